"""The tests of the kit, one module a subject. They know a backend by its hooks and what it declares, nothing else."""
