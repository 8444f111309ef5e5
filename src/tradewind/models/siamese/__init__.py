"""Matching questions with answers: two BiLSTMs and the cosine between what they see."""

from __future__ import annotations

from tradewind.models.siamese.estimator import SiameseBiLSTM

__all__ = ["SiameseBiLSTM"]
