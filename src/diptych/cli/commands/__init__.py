"""The commands of the program, each with what it prints and draws."""
