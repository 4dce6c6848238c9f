"""rows.py - a measurement, and the budgets that some of them have."""
import dataclasses
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ARCHS = ("x86_64", "aarch64")
HOST = "host"

# {row: {where: most}}, or for rates {row: {where: [least]}}
BUDGETS = json.loads((HERE / "budgets.json").read_text())


class BenchError(Exception):
    """A measurement failed. The message says what was found and expected."""


@dataclasses.dataclass
class Row:
    name: str
    where: str  # an architecture, or the host
    value: float  # None: not measured, and `how` says why
    unit: str
    how: str

    @property
    def budget(self):
        """(most, least): one of them, or neither."""
        found = BUDGETS.get(self.name, {}).get(self.where)
        return (None, found[0]) if isinstance(found, list) else (found, None)

    @property
    def budget_text(self):
        most, least = self.budget
        return f"<= {most:g}" if most is not None else f">= {least:g}" if least is not None else ""

    @property
    def good(self):
        most, least = self.budget
        if self.value is None:
            return True
        # 0: what is measured did not happen.
        return self.value > 0 and (most is None or self.value <= most) and (least is None or self.value >= least)

    @property
    def value_text(self):
        if self.value is None:
            return "-"
        digits = 0 if abs(self.value) >= 10000 or self.value == int(self.value) else 2
        return f"{self.value:,.{digits}f} {self.unit}"

    def as_dict(self):
        most, least = self.budget
        return {"row": self.name, "where": self.where, "value": self.value, "unit": self.unit, "most": most,
                "least": least, "good": self.good, "how": self.how}
