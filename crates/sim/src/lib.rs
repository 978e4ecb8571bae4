//! Wires the operating system to the machine and runs a scenario.
