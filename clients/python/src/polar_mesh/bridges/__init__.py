"""Thin bridges into trainers: each gives the mesh's sessions the form of one trainer's plug-in point."""
