//! System calls, line by line.
