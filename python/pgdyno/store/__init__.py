"""The run directory: written as things happen, readable after a kill at any byte."""
