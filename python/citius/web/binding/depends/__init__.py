"""Dependencies: functions whose results are arguments of a handler, and what is done behind them."""
