"""What may be measured, as files say it: contestants, workloads, experiments and their parts."""
