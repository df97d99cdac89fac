"""Loads published weights into the engines and says which version each of them serves."""
