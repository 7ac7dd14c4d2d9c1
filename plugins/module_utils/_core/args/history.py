# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which releases have which flag: written by tools/flag_history.py out of the published wheels, not by hand.

Each line of FLAGS is ``FIRST LAST DEPRECATED: flags without their dashes``, the first three as numbers into RELEASES;
DEPRECATED is the first release that calls the flag deprecated, ``-`` where none does. A flag with a gap stands once per span.
RENAMED is what the last release that had a retired flag said to use instead.
"""

from __future__ import annotations

RELEASES = (
    "0.4.6",
    "0.4.6.post1",
    "0.4.6.post2",
    "0.4.6.post3",
    "0.4.6.post4",
    "0.4.6.post5",
    "0.4.7",
    "0.4.7.post1",
    "0.4.8",
    "0.4.8.post1",
    "0.4.9",
    "0.4.9.post1",
    "0.4.9.post2",
    "0.4.9.post3",
    "0.4.9.post4",
    "0.4.9.post5",
    "0.4.9.post6",
    "0.4.10",
    "0.4.10.post1",
    "0.4.10.post2",
    "0.5.1",
    "0.5.1.post1",
    "0.5.1.post2",
    "0.5.1.post3",
    "0.5.2",
    "0.5.3",
    "0.5.3.post1",
    "0.5.3.post2",
    "0.5.3.post3",
    "0.5.4",
    "0.5.4.post1",
    "0.5.4.post2",
    "0.5.4.post3",
    "0.5.5",
    "0.5.5.post1",
    "0.5.5.post2",
    "0.5.5.post3",
    "0.5.6",
    "0.5.6.post1",
    "0.5.6.post2",
    "0.5.7",
    "0.5.8",
    "0.5.8.post1",
    "0.5.9",
    "0.5.10",
    "0.5.10.post1",
    "0.5.11",
    "0.5.12",
    "0.5.12.post1",
    "0.5.13",
    "0.5.13.post1",
    "0.5.14",
    "0.5.15",
    "0.5.15.post1",
    "0.5.16",
    "0.5.17",
    "0.5.18",
    "0.5.19",
    "0.5.20",
    "0.5.21",
    "0.5.22",
    "0.5.23",
)

FLAGS = """\
0 5 -: n-share-experts-fusion
0 6 0: enable-flashinfer-mla enable-flashmla
0 29 19: enable-deepep-moe enable-ep-moe
0 45 -: ds-channel-config-path ds-heavy-channel-num ds-heavy-channel-type ds-heavy-token-num ds-sparse-decode-threshold
  enable-double-sparsity
0 48 44: enable-nan-detection
0 50 -: debug-tensor-dump-inject
0 55 -: torchao-config
0 57 44: stream-output
0 57 51: cuda-graph-bs cuda-graph-max-bs
0 61 -: allow-auto-truncate api-key attention-backend base-gpu-id chat-template chunked-prefill-size completion-template
  constrained-json-whitespace-pattern context-length cpu-offload-gb data-parallel-size debug-tensor-dump-input-file
  debug-tensor-dump-output-folder decode-log-interval deepep-mode delete-ckpt-after-loading device disable-chunked-prefix-cache
  disable-cuda-graph-padding disable-custom-all-reduce disable-outlines-disk-cache disable-overlap-schedule disable-radix-cache
  disaggregation-bootstrap-port disaggregation-ib-device disaggregation-mode disaggregation-transfer-backend dist-init-addr
  dist-timeout download-dir dp-size dtype enable-cache-report enable-custom-logit-processor enable-hierarchical-cache
  enable-memory-saver enable-metrics enable-mixed-chunk enable-multimodal enable-nccl-nvls enable-p2p-check
  enable-tokenizer-batch-encode enable-torch-compile ep-size expert-parallel-size file-storage-path
  flashinfer-mla-disable-ragged gpu-id-step grammar-backend hicache-ratio hicache-size hicache-write-policy host is-embedding
  json-model-override-args kv-cache-dtype load-balance-method load-format log-level log-level-http log-requests
  log-requests-level lora-backend lora-paths max-loras-per-batch max-prefill-tokens max-running-requests max-total-tokens
  mem-fraction-static model-path moe-dense-tp-size nccl-init-addr nnodes node-rank num-continuous-decode-steps page-size port
  quantization quantization-param-path random-seed reasoning-parser revision sampling-backend schedule-conservativeness
  schedule-policy served-model-name show-time-cost skip-tokenizer-init speculative-accept-threshold-acc
  speculative-accept-threshold-single speculative-algorithm speculative-draft-model-path speculative-eagle-topk
  speculative-num-draft-tokens speculative-num-steps speculative-token-map stream-interval tensor-parallel-size tokenizer-mode
  tokenizer-path tool-call-parser torch-compile-max-bs tp-size triton-attention-num-kv-splits triton-attention-reduce-in-fp32
  trust-remote-code warmups watchdog-timeout
0 61 51: disable-cuda-graph
0 61 56: disable-fast-image-processor
0 61 60: enable-dp-attention
2 25 -: max-micro-batch-size
2 61 -: pipeline-parallel-size pp-size
3 23 -: pdlb-url
3 61 -: mm-attention-backend
4 61 -: enable-dp-lm-head enable-request-time-stats-logging
5 57 46: collect-tokens-histogram
5 57 56: enable-expert-distribution-metrics
5 61 -: bucket-e2e-request-latency bucket-inter-token-latency bucket-time-to-first-token deepep-config enable-eplb
  ep-dispatch-algorithm ep-num-redundant-experts eplb-rebalance-num-iterations expert-distribution-recorder-buffer-size
  expert-distribution-recorder-mode init-expert-location kv-events-config preferred-sampling-params
6 12 -: impl
6 61 -: disable-shared-experts-fusion enable-mscclpp enable-two-batch-overlap eplb-algorithm eplb-rebalance-layers-per-chunk
7 13 -: disable-overlap-cg-plan
7 26 -: debug-tensor-dump-prefill-only
7 43 -: disaggregation-decode-dp disaggregation-decode-tp disaggregation-prefill-pp
7 61 -: enable-profile-cuda-graph enable-return-hidden-states num-reserved-decode-tokens sleep-on-idle
8 14 -: enable-flashinfer-moe
8 61 -: custom-weight-loader weight-loader-disable-mmap
9 61 -: model model-loader-extra-config
10 50 41: hybrid-kvcache-ratio
10 61 -: crash-dump-folder nccl-port skip-server-warmup
10 61 51: enable-flashinfer-allreduce-fusion
11 29 20: enable-triton-kernel-moe
11 61 -: hicache-io-backend
13 61 -: disable-hybrid-swa-memory enable-lora enable-metrics-for-all-schedulers enable-pdmux hicache-storage-backend
  lora-target-modules max-lora-rank model-impl sm-group-num swa-full-tokens-ratio
15 29 20: enable-flashinfer-cutlass-moe enable-flashinfer-trtllm-moe
15 61 -: decode-attention-backend prefill-attention-backend
16 61 -: max-queued-requests
17 61 -: ep
18 61 -: enable-cudagraph-gc hicache-mem-layout
19 61 -: enable-symm-mem max-loaded-loras moe-a2a-backend
20 29 20: enable-flashinfer-mxfp4-moe
20 61 -: disable-flashinfer-cutlass-moe-fp4-allgather flashinfer-mxfp4-moe-precision gc-warning-threshold-secs
  hicache-storage-prefetch-policy moe-runner-backend offload-group-size offload-mode offload-num-in-group offload-prefetch-step
  scheduler-recv-interval tbo-token-distribution-threshold tool-server weight-version
23 61 -: hicache-storage-backend-extra-config
24 57 41: prefill-round-robin-balance
24 61 -: enable-lmcache eplb-min-rebalancing-utilization-threshold generation-tokens-buckets mamba-ssm-dtype
  max-mamba-cache-size numa-node prompt-tokens-buckets speculative-attention-mode speculative-draft-model
  speculative-draft-model-revision tokenizer-worker-num
25 28 -: nsa-decode nsa-prefill
25 29 25: enable-flashinfer-cutedsl-moe
25 30 -: oltp-traces-endpoint
25 39 -: load-watch-interval
25 43 -: speculative-ngram-branch-length speculative-ngram-max-match-window-size speculative-ngram-min-match-window-size
25 58 54: keep-mm-feature-on-device
25 61 -: config disaggregation-decode-enable-offload-kvcache disaggregation-decode-polling-interval
  dynamic-batch-tokenizer-batch-size dynamic-batch-tokenizer-batch-timeout enable-deterministic-inference
  enable-dynamic-batch-tokenizer enable-fp32-lm-head enable-priority-scheduling enable-single-batch-overlap
  enable-torch-symm-mem enable-trace enable-weights-cpu-backup max-lora-chunk-size priority-scheduling-preemption-threshold
  radix-eviction-policy remote-instance-weight-loader-seed-instance-ip remote-instance-weight-loader-seed-instance-service-port
  remote-instance-weight-loader-send-weights-group-ports schedule-low-priority-values-first speculative-ngram-capacity
  speculative-ngram-match-type speculative-ngram-max-bfs-breadth speculative-ngram-min-bfs-breadth
  tokenizer-metrics-allowed-custom-labels tokenizer-metrics-custom-labels-header triton-attention-split-tile-size
26 45 -: multi-item-scoring-delimiter
26 61 -: modelopt-quant pp-max-micro-batch-size sampling-defaults
27 28 -: crash-on-nan
27 29 -: enable-beta-spec
27 50 44: enable-piecewise-cuda-graph
27 57 51: piecewise-cuda-graph-max-tokens piecewise-cuda-graph-tokens
27 61 -: constrained-json-disable-any-whitespace elastic-ep-backend lora-eviction-policy mamba-full-memory-ratio
  modelopt-checkpoint-restore-path modelopt-checkpoint-save-path mooncake-ib-device pdmux-config-path
  speculative-draft-load-format
27 61 54: grpc-mode
29 33 -: kt-amx-method kt-amx-weight-path
29 57 49: nsa-decode-backend nsa-prefill-backend
29 57 51: piecewise-cuda-graph-compiler
29 61 -: abort-on-priority-when-disabled checkpoint-engine-wait-weights-before-ready disable-tokenizer-batch-decode kt-cpuinfer
  kt-num-gpu-experts kt-threadpool-count modelopt-export-path quantize-and-serve
30 61 -: rl-on-policy-target
31 43 -: mm-max-concurrent-calls mm-per-request-timeout
31 61 -: debug-tensor-dump-layers otlp-traces-endpoint
32 61 -: decrypted-config-file decrypted-draft-config-file speculative-moe-runner-backend
33 61 -: kt-max-deferred-experts-per-token
34 61 -: kt-method kt-weight-path
36 61 -: enable-attn-tp-input-scattered enable-broadcast-mm-inputs-process enable-draft-weights-cpu-backup
  enable-layerwise-nvtx-marker export-metrics-to-file export-metrics-to-file-dir
37 37 -: dllm-block-size
37 39 -: enable-flashinfer-autotune
37 57 49: enable-nsa-prefill-context-parallel
37 61 -: dllm-algorithm enable-torch-compile-debug-mode fastapi-root-path forward-hooks mm-enable-dp-encoder mm-process-config
38 61 -: dllm-algorithm-config enable-fused-qk-norm-rope speculative-moe-a2a-backend
39 61 -: fp8-gemm-backend rl-quant-profile
40 42 -: disaggregation-decode-enable-fake-auto
40 50 -: custom-sigquit-handler
40 57 51: mamba-scheduler-strategy
40 61 -: disable-flashinfer-autotune enable-dynamic-chunking enable-multi-layer-eagle enable-precise-embedding-interpolation
  enable-prefix-mm-cache enable-return-routed-experts encoder-only encoder-transfer-backend encoder-urls language-only
  limit-mm-data-per-request log-requests-format mamba-track-interval pp-async-batch-depth prefill-max-requests
  remote-instance-weight-loader-backend remote-instance-weight-loader-start-seed-via-transfer-engine soft-watchdog-timeout
  speculative-draft-attention-backend speculative-draft-model-quantization
41 43 -: disable-hicache-numa-detect hierarchical-sparse-attention-extra-config
41 57 49: nsa-prefill-cp-mode
41 61 -: admin-api-key enable-lora-overlap-loading enable-prefill-delayer fp4-gemm-backend hf-chat-template-name
  log-requests-target model-checksum prefill-delayer-forward-passes-buckets prefill-delayer-max-delay-passes
  prefill-delayer-token-usage-low-watermark prefill-delayer-wait-seconds-buckets uvicorn-access-log-exclude-prefixes
43 61 -: attention-context-parallel-size attn-cp-size extra-metric-labels mamba-backend moe-data-parallel-size moe-dp-size
44 57 51: disable-piecewise-cuda-graph enable-prefill-context-parallel enforce-piecewise-cuda-graph prefill-cp-mode
44 61 -: default-priority-value disable-priority-preemption enable-adaptive-dispatch-to-encoder enable-aiter-allreduce-fusion
  enable-elastic-expert-backup enable-fused-moe-sum-all-reduce enable-hisparse enable-mfu-metrics enable-mm-global-cache
  enable-ssl-refresh enable-streaming-session enforce-disable-flashinfer-allreduce-fusion engine-info-bootstrap-port
  experts-shared-outer-loras gc-threshold hisparse-config incremental-streaming-output linear-attn-backend
  linear-attn-decode-backend linear-attn-prefill-backend modelexpress-config no-experts-shared-outer-loras pre-warm-nccl
  speculative-ngram-max-trie-depth ssl-ca-certs ssl-certfile ssl-keyfile ssl-keyfile-password
  stream-response-default-include-usage use-ray
46 48 -: no-record-nolora-graph record-nolora-graph
46 57 49: speculative-dflash-draft-window-size
46 57 51: enable-breakable-cuda-graph
46 58 54: elastic-ep-rejoin
46 60 -: speculative-skip-dp-mlp-sync
46 61 -: batch-notify-size debug-cuda-graph disaggregation-decode-enable-radix-cache enable-dp-attention-local-control-broadcast
  enable-http2 enable-mis enable-quant-communications enforce-shared-experts-fusion grpc-http-sidecar-port lora-strict-loading
  lora-use-virtual-experts msprobe-dump-config no-lora-strict-loading speculative-adaptive speculative-adaptive-config
  speculative-dflash-block-size speculative-ngram-external-corpus-max-tokens speculative-ngram-external-corpus-path
  speculative-ngram-external-sam-budget strip-thinking-cache tokenizer-backend weight-loader-prefetch-checkpoints
  weight-loader-prefetch-num-threads
47 53 -: enable-deepep-waterfill
47 61 -: detokenizer-worker-num enable-forward-pass-metrics enable-return-indexer-topk enable-strict-thinking
  forward-pass-metrics-ipc-name forward-pass-metrics-worker-id hierarchical-sparse-attention-extra-config
  lora-drain-wait-threshold model-config-parser prefill-delayer-max-delay-ms prefill-delayer-queue-min-ratio
  prefill-only-disable-kv-cache speculative-draft-window-size weight-loader-drop-cache-after-load
49 53 -: optimistic-prefill-retries
49 57 51: dsa-prefill-cp-mode enable-dsa-prefill-context-parallel
49 61 -: asr-max-buffer-seconds asr-max-concurrent-sessions deepep-dispatcher-output-dtype disable-attn-tp-gather
  dsa-decode-backend dsa-prefill-backend dsa-topk-backend enable-deepseek-v4-fp4-indexer encoder-bootstrap-port
  encoder-register-urls kv-canary kv-canary-real-data kv-canary-sweep-interval lmcache-config-file
  load-snapshot-publish-interval radix-cache-backend trace-modules
51 59 -: cuda-graph-tc-compiler
51 61 -: cp-strategy cuda-graph-backend-decode cuda-graph-backend-prefill cuda-graph-bs-decode cuda-graph-bs-prefill
  cuda-graph-config cuda-graph-max-bs-decode cuda-graph-max-bs-prefill disable-decode-cuda-graph disable-prefill-cuda-graph
  disaggregation-decode-extra-slots enable-int8-mamba-checkpoint enable-prefill-cp flashinfer-allreduce-fusion-backend
  int8-mamba-ckpt-size mamba-radix-cache-strategy speculative-use-rejection-sampling
52 61 -: bf16-gemm-backend dcp-size decode-context-parallel-size decoupled-spec-bind-endpoint decoupled-spec-connect-endpoints
  decoupled-spec-rank decoupled-spec-role dsa-paged-mqa-logits-backend enable-linear-replayssm
  enable-mamba-cache-stochastic-rounding enable-page-major-kv-layout enable-session-radix-cache enable-tf32-matmul
  enable-unified-memory linear-replayssm-cache-len mamba-cache-philox-rounds min-free-slots-delay spec-trace-dir
54 57 55: enable-gdn-replayssm-spec
54 61 -: default-chat-template-kwargs dllm-fdfo elastic-ep-initial-size elastic-ep-join-mode elastic-ep-join-rank-offset
  elastic-ep-scale-timeout enable-dsa-cache-layer-split enable-flexkv enable-scattered-sconv enable-waterfill flexkv-config-file
  fuseep-mode grpc-port max-ep-size mm-feature-transport no-dllm-fdfo optimistic-prefill-attempts retraction-policy sidecar
  sidecar-args smg-grpc-mode smg-http-sidecar-port speculative-dspark-align-verify-tokens-to-graph-tier
  speculative-dspark-block-size speculative-dspark-confidence-sts-path speculative-dspark-sps-table-path
55 61 -: dcp-comm-backend dcp-replicate-q-proj dwdp-size enable-cp-decode-attn-tp enable-linear-replayssm-spec
  flashinfer-autotune-skip-ops linear-attn-verify-backend mamba-max-states-per-path mm-io-worker-num mm-processor-worker-num
  no-dcp-replicate-q-proj return-hidden-states-mode weight-cache-mode weight-cache-socket weight-cache-timeout
56 61 -: allowed-media-domains c128-page-size disaggregation-decode-retraction-backup enable-tp-lm-head-all-to-all
  expert-balancedness-report-mode http2-max-concurrent-streams image-processor-backend language-model-only
  media-url-max-file-size-mb mlx-enable-sampling mm-global-cache-backend mm-preprocess-cache-size-mb
  no-enable-tp-lm-head-all-to-all speculative-draft-kv-cache-dtype startup-weight-load-mode trust-mm-content-hashes
57 61 -: deepep-v2-mode dsv4-prefill-backend enable-dense-mlp-attn-tp enable-layernorm-sp enable-lean-attention
  enable-shared-experts-attn-tp enable-w4a4-mxfp4-megamoe gated-launch-port hicache-host-memory-mode
  hicache-storage-prefetch-retry-max-attempts hicache-storage-prefetch-retry-poll-interval http2-initial-connection-window-size
  load-publish-endpoint prefill-decode-interval speculative-dsa-topk-backend
58 61 -: dsv4-attn-backend enable-response-store enable-unified-cache-external-linker flashinfer-a2a-dispatch-type
  no-ple-offload-embedding ple-offload-backend ple-offload-dir ple-offload-embedding radix-eviction-policy-config
  return-input-ids return-output-ids sampling-mask-max-tokens speculative-domino-candidate-pool-size
  unified-cache-external-linker-backend uno-lora-path
59 61 -: boundary-reduction constrained-json-max-whitespace-cnt context-bucket cuda-graph-max-seq-len-prefill
  cuda-graph-prefill-max-context disable-aiter-allreduce-fusion-in-decode disable-aiter-allreduce-fusion-in-prefill
  disaggregation-decode-host-receive-threshold disaggregation-enable-kv-checksum enable-decoder-swa-bounded-replay
  enable-encoder-swa-bounded-replay enable-linker-mla-dedup enable-pd-role-switch grpc-response-timeout-secs
  hicache-host-memory-fraction otlp-service-name prefill-kv-cache-dequant-dtype shared-experts-tp-size
  speculative-draft-sink-size swa-prefix-tails trust-request-chat-template
60 61 -: attention-data-parallel-size attn-dp-size disaggregation-decode-allocation-policy dsa-triton-union
  enable-dsa-fused-indexer enable-kv-cache-sharding enable-watermark no-enable-dsa-fused-indexer
  no-speculative-enable-w4a4-mxfp4-megamoe qsa-indexer-dtype speculative-enable-w4a4-mxfp4-megamoe
  speculative-use-block-verification watermark-config
61 61 -: enable-amd-monokernel enable-hicache enable-http-worker-reuseport enable-megamoe-for-layernorm-sp
  enable-nvidia-megakernel enable-paged-experts enable-return-aux-hidden-states no-enable-decoder-swa-bounded-replay
  no-enable-fused-qk-norm-rope no-enable-tf32-matmul no-mm-enable-dp-encoder paged-experts-num-resident
  prefill-decode-interval-min-bs return-aux-hidden-state-layer-ids unified-cache-external-linker-config
61 61 61: monokernel-backend
"""

RENAMED = {
    "--cuda-graph-bs": "--cuda-graph-bs-decode",
    "--cuda-graph-max-bs": "--cuda-graph-max-bs-decode",
    "--disable-piecewise-cuda-graph": "--cuda-graph-backend-prefill=disabled",
    "--dsa-prefill-cp-mode": "--cp-strategy",
    "--enable-breakable-cuda-graph": "--cuda-graph-backend-prefill=breakable",
    "--enable-dsa-prefill-context-parallel": "--enable-prefill-cp",
    "--enable-gdn-replayssm-spec": "--enable-linear-replayssm-spec",
    "--enable-nsa-prefill-context-parallel": "--enable-prefill-cp",
    "--enable-prefill-context-parallel": "--enable-prefill-cp",
    "--enforce-piecewise-cuda-graph": "--cuda-graph-backend-prefill=tc_piecewise",
    "--mamba-scheduler-strategy": "--mamba-radix-cache-strategy",
    "--monokernel-backend": "--enable-amd-monokernel",
    "--nsa-decode-backend": "--dsa-decode-backend",
    "--nsa-prefill-backend": "--dsa-prefill-backend",
    "--nsa-prefill-cp-mode": "--cp-strategy",
    "--piecewise-cuda-graph-compiler": "--cuda-graph-tc-compiler",
    "--piecewise-cuda-graph-max-tokens": "--cuda-graph-max-bs-prefill",
    "--piecewise-cuda-graph-tokens": "--cuda-graph-bs-prefill",
    "--prefill-cp-mode": "--cp-strategy",
    "--speculative-dflash-draft-window-size": "--speculative-draft-window-size",
    "--stream-output": "--incremental-streaming-output",
}
