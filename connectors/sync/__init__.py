"""Loads published weights into the engines."""
