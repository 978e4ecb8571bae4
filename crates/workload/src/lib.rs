//! Programs that run inside the model.
