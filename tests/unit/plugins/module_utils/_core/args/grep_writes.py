"""A plain text search for writes to fields, and for each hit that is no write of the record the reason why not."""

from __future__ import annotations

import ast
import io
import re
import tokenize

ARGUMENT_CODE = ("srt/server_args.py", "srt/arg_groups/", "srt/model_executor/cuda_graph_config.py")


def hits(tree, names):
    """Return {(file, line): text} of every line that looks like a write to one of the fields."""
    word = "(?:" + "|".join(sorted(names, key=len, reverse=True)) + ")"
    graphs = r"|\w*cuda_graph_config(?:\.\w+)+\s*=(?!=)|\bwith_phase\(|\b_set\(Phase" if "cuda_graph_config" in names else ""
    inside = re.compile(rf"\b{word}(?:\.\w+)*\s*=(?!=)|[\"']{word}[\"']\s*(?:\]\s*=(?!=)|:)|setattr\(.*{word}{graphs}")
    late = re.compile(rf"server_args(?:\(\))?\.{word}(?:\.\w+)*\s*=(?!=)|\bsetattr\(\s*(?:\w+\.)*(?:get_global_)?server_args\b")
    override = re.compile(r"get_context\(\)\.override\(|server_args\.override\(")
    out = {}
    for rel in tree.glob("srt/"):
        text = tree.read(rel) or ""
        if not re.search(word, text):
            continue
        argument_code = rel.startswith(ARGUMENT_CODE)
        lines = text.splitlines()
        for number, line in enumerate(lines, start=1):
            if (inside if argument_code else late).search(line):
                out[rel, number] = line.strip()
            elif not argument_code and override.search(line):
                for ahead in range(number, min(number + 8, len(lines)) + 1):
                    if re.search(rf"\b{word}\s*=(?!=)", lines[ahead - 1]):
                        out[rel, ahead] = lines[ahead - 1].strip()
    return out


def reason(tree, rel, line, names):
    """Return why a hit writes no field of the record, None where it does."""
    text = tree.read(rel)
    return _in_text(text, line) or _by_syntax(tree.module(rel), line, names)


def _in_text(text, line):
    for token in _tokens(text):
        if token.start[0] <= line <= token.end[0]:
            if token.type == tokenize.COMMENT and token.line.strip().startswith("#"):
                return "a comment"
            if token.type == tokenize.STRING and (token.start[0] < line or token.line.strip().startswith(("'", '"', "f", "r"))):
                rest = token.line[: token.start[1]].strip() + token.line[token.end[1] :].strip()
                if token.start[0] < line or rest in ("", ",", ")", "),"):
                    return "words of a message or a docstring"
    return None


def _tokens(text):
    """Return the tokens, each f-string as one: from Python 3.12 on it comes in pieces, and may hold others."""
    opened = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":
            opened.append(token)
        if not opened:
            yield token
        elif kind == "FSTRING_END":
            first = opened.pop()
            if not opened:
                yield first._replace(type=tokenize.STRING, end=token.end)


def _by_syntax(module, line, names):
    for node in ast.walk(module):
        if isinstance(node, ast.Assert) and node.lineno <= line <= node.end_lineno:
            return "a check and its message"
        if isinstance(node, ast.Call) and node.lineno <= line <= node.end_lineno and ast.unparse(node.func).startswith("logger."):
            return "words of a message or a docstring"
        if isinstance(node, ast.FunctionDef) and node.lineno == line and node.name in ("with_phase", "_set"):
            return "the definition of the helper"
        if isinstance(node, (ast.ImportFrom, ast.Import)) and node.lineno <= line <= node.end_lineno:
            return "an import"
        if isinstance(node, ast.AnnAssign) and node.lineno <= line <= node.end_lineno and isinstance(node.target, ast.Name):
            return "the definition of a field or a name"
        if isinstance(node, ast.arg) and node.lineno == line:
            return "a parameter"
    return _local_or_handed(module, line, names)


def _local_or_handed(module, line, names):
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and node.lineno == line and all(isinstance(one, ast.Name) for one in node.targets):
            return "a local name"
        if isinstance(node, ast.For) and node.lineno == line:
            return "a loop over names, its writes stand below"
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            for key in node.keywords:
                if key.arg in names and key.lineno == line and name in READERS:
                    return f"handed on to {name}()"
    return None


# Functions that take a value under the name of a field and set nothing: read in 0.5.11, 0.5.12, 0.5.18 and 0.5.23.
READERS = {"_resolve_max_context_size", "validate_muse_megamoe_token_budget"}
