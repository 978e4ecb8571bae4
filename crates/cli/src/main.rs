//! The `piebald` command.

fn main() {}
