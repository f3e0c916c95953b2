//! The border to Python: the only place that names pyo3.
