"""What the backends of GPU memory share: the data planes, buffers, staging, device selection, error handling.

A vendor's distribution supplies a Vendor (vendor.py) and little else; nothing here knows a vendor's name.
"""
