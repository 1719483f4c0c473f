"""One module for each command; ``definition`` beside this folder names its function."""
