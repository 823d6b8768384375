//! A comparison, and nothing else: `cargo bench -p deposed-bench-prove`.
