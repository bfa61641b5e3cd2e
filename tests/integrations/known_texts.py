"""The texts of the small cache, and some that it lacks."""

from __future__ import annotations

KNOWN = ("甲方与乙方签订合同。", "合同金额为三万元。", "本合同自签订之日起生效。")
UNKNOWN = ("丙方应当提前通知乙方。", "the contract and the con")
