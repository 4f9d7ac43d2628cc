"""Tables of bits, with a public column that is different in every record."""

from pathlib import Path

KINDS = {
    "number": ("min = 0\nmax = 1\n", (0, 1)),
    "category": ('values = ["no", "yes"]\n', ("no", "yes")),
    "boolean": ("values = [false, true]\n", ("false", "true")),
    "declared": ("values = [0, 1]\n", (0, 1)),
}


def written(folder: Path, bits: list[int], kind: str, key: str = "integer") -> Path:
    """A table with a unique public column and bits of some kind, and its policy."""
    declared, values = KINDS[kind]
    keys = (
        range(1000, 1000 + len(bits)) if key == "integer" else [f"k{i}'" for i in range(len(bits))]
    )
    rows = "".join(
        f"{k},{i % 3},{values[bit]}\n" for i, (k, bit) in enumerate(zip(keys, bits, strict=True))
    )
    (folder / "t.csv").write_text("k,g,s\n" + rows)
    path = folder / "t.toml"
    path.write_text(
        '[table]\nsource = "t.csv"\n[columns.k]\nrole = "public"\n[columns.g]\nrole = "public"\n'
        f'[columns.s]\nrole = "private"\n{declared}'
    )
    return path
