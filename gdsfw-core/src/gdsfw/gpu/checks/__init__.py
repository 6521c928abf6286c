"""Checks that vendors of GPUs share: storage rules, PCI Express, the kernel. Vendors give names, ids and rules."""
