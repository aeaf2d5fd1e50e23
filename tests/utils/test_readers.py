# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Text files from users are read within limits; anything else is one line that names the file."""

import os
import re

import pytest
from umc.utils.config import FileModel, FolderName, read_overrides, read_yaml, validated
from umc.utils.errors import UmcError, shown
from umc.utils.text import MAX_BYTES, MAX_DEPTH, parse_json, read_json, read_text

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 5000, "nested"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested"),
        ('{"a": 1, "a": 2}', "key a is given twice"),
        ('{"a": NaN}', "NaN is not finite"),
        ('{"a": 1e999}', "1e999 is not finite"),
        ('{"a": 1' + "0" * 5000 + "}", "64-bit"),
        (r'{"a": "\ud800"}', "unpaired surrogate"),
        ('{"a": ' + '"' + r"\"" * 100_000, "not valid JSON"),
        ("", "not valid JSON"),
    ],
)
def test_json_that_is_refused(text, why):
    with pytest.raises(UmcError, match=f"^f.json .*{why}.*; do that$"):
        parse_json(text, "f.json", "do that")


def test_json_brackets_in_strings_are_text():
    assert parse_json('{"a": "' + "[" * 500 + r"\"{\\" + '"}', "f") == {"a": "[" * 500 + '"{\\'}
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH, "f")
    assert parse_json("[NaN]", "f", allow_nan=True) != [0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: " + "[" * 5000, "nested"),
        ("- " * 70 + "a", "nested"),
        (BOMB, "values"),
        ("a: &a [*a]", "alias"),
        ("".join(f"a{n}: &a{n} [{f'*a{n - 1}' if n else 1}]\n" for n in range(70)), "nested"),
        ("a: 1\na: 2", "key a is given twice"),
        ("a: .nan", "not finite"),
        ("a: 0x" + "f" * 5000, "64-bit"),
        ("a: 2001-99-99", "month"),
        ("a: !!python/object/apply:os.system [ls]", "tag"),
        ("a: !!int x", "tag"),
        ("a: [", "parsing"),
        ("a: \x00", "characters"),
    ],
)
def test_yaml_that_is_refused(text, why):
    with pytest.raises(UmcError, match=f"^f.yaml is not valid YAML: .*{why}") as info:
        read_yaml(text, "f.yaml")
    assert "\n" not in str(info.value)
    assert len(str(info.value)) < 300


def test_values_of_overrides_are_read_the_same_way():
    with pytest.raises(UmcError, match=r"^the value of protocol.a=.nan is not valid YAML: .nan is not finite$"):
        read_overrides(["protocol.a=.nan"], "protocol")


def test_yaml_aliases_of_a_sensible_size_are_read():
    assert read_yaml("a: &a [1, 2]\nb: *a\nc: {<<: {d: 1.5}}", "f") == {"a": [1, 2], "b": [1, 2], "c": {"d": 1.5}}


def test_files_that_are_refused(tmp_path):
    binary, large, pipe = tmp_path / "binary", tmp_path / "large", tmp_path / "pipe"
    binary.write_bytes(b"a: \xff")
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    os.mkfifo(pipe)
    missing, null = tmp_path / "missing", tmp_path / "a\0b"
    for path, why in {
        binary: "not UTF-8",
        large: "16 MiB",
        pipe: "not a file",
        tmp_path: "not a file",
        missing: "No such file",
        null: "no such file",
        tmp_path / ("a" * 500): "too long",
    }.items():
        with pytest.raises(UmcError, match=f"{why}.*; do that$"):
            read_text(path, "do that")
    with pytest.raises(UmcError, match="not UTF-8"):
        read_json(binary)


class Named(FileModel):
    """A file with a name."""

    name: FolderName
    size: float = 0.0


@pytest.mark.parametrize("name", ["../evil", "/evil", "..", ".", ".a", "", "a/b", "a\\b", "a\n", "a" * 101, "-a", "a "])
def test_names_that_lead_elsewhere_are_refused(name):
    with pytest.raises(UmcError, match=r"^f: name: .*name"):
        validated(Named, {"name": name}, "f")


def test_mistakes_are_one_short_line():
    assert validated(Named, {"name": "a_1-b.c"}, "f").name == "a_1-b.c"
    for content in ({"name": ["x\n"] * 9999}, {"name": "a", "b\n" * 999: 1}, [[["\n"] * 999]], {"name": {"\n": 1}}):
        with pytest.raises(UmcError) as info:
            validated(Named, content, "f\n")
        assert re.fullmatch(r"f: .{1,400}", str(info.value))
    with pytest.raises(UmcError, match="finite"):
        validated(Named, {"name": "a", "size": float("nan")}, "f")
    assert shown("a\n\x1b[31mb") == "a [31mb"
    assert str(UmcError("no robot a\nb\udcff" + "x" * 9999 + "; take another")).startswith("no robot a b xxx")
    assert len(str(UmcError("x" * 9999 + "; take another"))) < 2100
    assert str(UmcError("x" * 9999 + "; take another")).endswith("; take another")
