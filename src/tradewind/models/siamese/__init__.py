"""Matching questions with answers: BiLSTMs encode both, and a cosine compares them."""

from __future__ import annotations

from tradewind.models.siamese.estimator import SiameseBiLSTM

__all__ = ["SiameseBiLSTM"]
