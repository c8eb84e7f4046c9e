"""The lints of the compiler."""
