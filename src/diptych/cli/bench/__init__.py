"""The commands of ``diptych bench``, each with its tables and figures."""
