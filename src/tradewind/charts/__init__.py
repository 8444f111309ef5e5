"""What people see: figures as plain values (chart.py), and what draws them.

This room knows nothing of studies. `study/figures/` makes charts of a study.
"""
