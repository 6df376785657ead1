"""The management interface, `/api/admin/v1`, on the operations port."""
