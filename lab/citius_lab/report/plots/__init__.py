"""Plots as SVG that stands in a page."""
