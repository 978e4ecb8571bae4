//! QEMU plugins and the recorder.
