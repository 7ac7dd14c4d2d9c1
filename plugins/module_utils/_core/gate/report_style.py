# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The style sheet of report.html: light and dark, desktop and phone, no assets from outside."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--page:#f5f6f8;--card:#fff;--ink:#14181f;--soft:#5b6472;--faint:#e3e6eb;--rule:#d3d8e0;
--blue:#2f6fde;--blue-soft:#d9e6fb;--good:#177a3d;--good-soft:#dff3e5;--bad:#c02b25;--bad-soft:#fbe4e2;--warn:#96620a;
--warn-soft:#fbefd6;--amber:#d98a12;--violet:#8b45c9;--shade:#e8effb}
@media (prefers-color-scheme:dark){:root{--page:#0f1216;--card:#181c22;--ink:#e9ecf1;--soft:#9aa4b2;--faint:#262c35;
--rule:#343c48;
--blue:#6ea2ff;--blue-soft:#1f3050;--good:#5fd08a;--good-soft:#15301f;--bad:#ff8078;--bad-soft:#3a1a19;--warn:#f0bd62;
--warn-soft:#352811;--amber:#f0a93c;--violet:#c99bf5;--shade:#212c42}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
font-variant-numeric:tabular-nums}
main{max-width:1120px;margin:0 auto;padding:28px 20px 60px}
h1,h2,h3,p{margin:0}h2{font-size:18px;margin:34px 0 12px}h3{font-size:14px;font-weight:600}
.kicker{color:var(--soft);font-size:13px;margin-bottom:12px;overflow-wrap:anywhere}
.banner{background:var(--warn-soft);color:var(--warn);border-radius:10px;padding:10px 16px;margin-bottom:14px;font-weight:600}
.hero{border-radius:14px;padding:22px 26px;background:var(--warn-soft);border-left:8px solid var(--warn)}
.hero.pass{background:var(--good-soft);border-color:var(--good)}.hero.fail{background:var(--bad-soft);border-color:var(--bad)}
.hero h1{font-size:52px;line-height:1.05;letter-spacing:-.02em;color:var(--warn)}
.hero.pass h1{color:var(--good)}.hero.fail h1{color:var(--bad)}
.hero ul{margin:10px 0 0;padding-left:20px;font-size:16px;overflow-wrap:anywhere}.hero p{margin-top:10px;font-size:16px}
.panel{background:var(--card);border:1px solid var(--faint);border-radius:12px;padding:18px 20px;min-width:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(210px,1fr));gap:14px;margin-top:14px}
.tile b{display:block;font-size:30px;line-height:1.2;letter-spacing:-.01em}.tile b small{font-size:15px;font-weight:500;
color:var(--soft)}
.tile p{color:var(--soft);font-size:13px}.tile .top{display:flex;justify-content:space-between;gap:8px;align-items:center}
.grid2{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:14px}
.grid3{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));gap:14px}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(225px,1fr));gap:16px 22px}
.head{display:flex;flex-wrap:wrap;justify-content:space-between;gap:2px 12px;align-items:baseline;margin-bottom:8px}
.head span{color:var(--soft);font-size:13px}
.note{color:var(--soft);font-size:13px;margin-top:10px;overflow-wrap:anywhere}
.badge{display:inline-block;border-radius:99px;padding:1px 10px;font-size:12.5px;font-weight:600;background:var(--faint);
color:var(--soft);
white-space:nowrap}
.badge.pass{background:var(--good-soft);color:var(--good)}.badge.fail,.badge.error{background:var(--bad-soft);color:var(--bad)}
.badge.inconclusive,.badge.advice{background:var(--warn-soft);color:var(--warn)}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:right;color:var(--soft);font-weight:500;font-size:13px;padding:0 10px 8px;vertical-align:bottom}
td{text-align:right;padding:9px 10px;border-top:1px solid var(--faint);vertical-align:top}
small{color:var(--soft);font-weight:400}td small,.stage small{display:block;font-size:12px;white-space:nowrap}
td small.flow{white-space:normal}.sub{margin:20px 0 8px}.tile .room{color:var(--ink);margin-top:4px}
th:first-child,td:first-child{text-align:left;padding-left:0}th:last-child,td:last-child{padding-right:0}
td.code{white-space:nowrap;width:1%}td ul{margin:8px 0 0;padding-left:20px}
td.text,th.text{text-align:left;overflow-wrap:anywhere}
.off{color:var(--bad);font-weight:600}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--soft)}
svg.large text{font-size:12px}svg .strong{fill:var(--ink);font-weight:600}svg .value{fill:var(--blue);font-weight:600}
.grid{stroke:var(--faint);fill:none}.axis{stroke:var(--rule);fill:none}
svg .fine{font-size:11.5px}svg .bad{fill:var(--bad)}
.bound,.serial{fill:none;stroke:var(--soft);stroke-width:1.5}.bound{stroke-dasharray:6 4}.serial{stroke-dasharray:2 4}
.dot{fill:var(--blue);stroke:var(--card);stroke-width:2}.dot.fail{fill:var(--bad)}.dot.pass{fill:var(--good)}
.dot.inconclusive{fill:var(--warn)}
.whisker{stroke:var(--ink);fill:none;stroke-width:1.5}path.limit{stroke:var(--bad);stroke-width:2.5;fill:none}
.hist{fill:var(--blue);opacity:.6}path.p50{stroke:var(--ink);stroke-width:2}path.p90{stroke:var(--amber);stroke-width:2}
path.p99{stroke:var(--violet);stroke-width:2;fill:none}
.window{fill:var(--shade)}.area{fill:var(--blue);opacity:.14}.line{stroke:var(--blue);stroke-width:1.8;fill:none;
stroke-linejoin:round}
.line.thin{stroke-width:1.2;opacity:.7}.line.soft{stroke:var(--soft)}
.mean{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 3;fill:none}
.power{fill:var(--amber);opacity:.3}.watt{stroke:var(--amber);stroke-width:1.5;fill:none;stroke-linejoin:round}
.busy{stroke:var(--blue);stroke-width:1.5;fill:none;stroke-linejoin:round}
.key{display:inline-flex;vertical-align:middle;align-items:center;gap:6px;margin-right:14px}
.key:last-child{margin-right:0}
.key i{width:14px;height:10px;border-radius:2px;background:var(--blue);display:inline-block;flex:none}
.key i.amber,.key i.p90{background:var(--amber)}.key i.p99,.key i.violet{background:var(--violet)}
.key i.p50{background:var(--ink)}.key i.soft{background:var(--soft)}
.key i.limit{background:var(--bad)}.key i.p50,.key i.p90,.key i.p99,.key i.limit,.key i.thin,.key i.flat{height:3px}
.key i.dash,.key i.dots,.key i.mean{background:none;height:0;border-radius:0;border-top:2px dashed var(--soft)}
.key i.dots{border-top-style:dotted}.key i.mean{border-color:var(--ink)}
.key i.dot{width:10px;border-radius:50%}
.key i.shade{background:var(--shade);border:1px solid var(--rule)}
.stage{display:grid;grid-template-columns:104px 1fr 48px 1fr 108px;gap:10px;align-items:center;padding:4px 0;font-size:14px}
.stage>:nth-child(odd):not(:first-child){text-align:right;color:var(--soft);white-space:nowrap}
.meter{display:block;height:12px;border-radius:3px;background:var(--faint);overflow:hidden}.meter i{display:block;height:100%;
background:var(--blue)}
.meter i.amber{background:var(--amber)}.meter.unknown{background:none;border:1px dashed var(--rule)}
.tile .meter{height:8px;margin:8px 0 6px}
.found{border-left:4px solid var(--warn);padding:2px 0 2px 16px;margin:0 0 20px}.found:last-child{margin-bottom:0}
.found.info{border-color:var(--blue)}.found h3{font-size:13px;letter-spacing:.03em;color:var(--soft)}
.found p{overflow-wrap:anywhere}
.found .say{font-size:16px;margin:2px 0 6px}
.facts{display:flex;flex-wrap:wrap;gap:4px 18px;margin-top:8px;color:var(--soft);font-size:13px}.facts b{color:var(--ink);
font-weight:600}
.facts span{overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:minmax(120px,auto) 1fr;gap:6px 18px;margin:0;font-size:14px}dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}code{font:13px ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
details summary{cursor:pointer;color:var(--soft);margin:12px 0}td summary{margin:0!important}
@media (max-width:640px){main{padding:16px 12px 40px}.hero{padding:16px 18px}.hero h1{font-size:40px}.panel{padding:14px}
.wide thead,.stacked thead{display:none}
.wide tr,.stacked tr{display:grid;grid-template-columns:1fr 1fr;gap:8px 14px;border-top:1px solid var(--faint);padding:12px 0}
.stacked tr{grid-template-columns:1fr}
.wide tr:first-child,.stacked tr:first-child{border-top:0;padding-top:0}
.wide td,.stacked td{border:0;padding:0;text-align:left}
.wide td.text{grid-column:1/-1}
.wide td::before,.stacked td::before{content:attr(data-label);display:block;color:var(--soft);font-size:12px}
.stacked td:first-child::before{display:none}
.narrow td{display:block;border:0;padding:1px 0;width:auto;white-space:normal}
.narrow tr{display:block;border-top:1px solid var(--faint);padding:8px 0}.narrow thead{display:none}
.cards{grid-template-columns:1fr 1fr;gap:14px 12px}.stage{grid-template-columns:84px 1fr 44px;gap:4px 10px;padding:7px 0}
.stage>:nth-child(4){grid-column:2}.stage>:nth-child(5){grid-column:3}.stage .of{display:none}
svg.large text{font-size:17px}svg.large .fine{font-size:15.5px}svg.small text{font-size:14px}svg.small .fine{font-size:13px}
.cards .head{display:block}.cards h3 small{display:block}
dl{grid-template-columns:1fr;gap:2px}dd{margin-bottom:8px}}
@media print{body{background:#fff}.panel{break-inside:avoid}}
"""
