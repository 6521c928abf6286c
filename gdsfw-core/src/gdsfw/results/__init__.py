"""What a run measured: the document `gdsfw-results/1`, how it is built, saved, shown and compared."""
