//! Tables, JSON, CSV, HTML and plots.
