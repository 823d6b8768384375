//! Prints the history format's JSON Schema as the types have it:
//!
//! ```sh
//! cargo run -p deposed-checkers --features schema --example schema > checkers/history.schema.json
//! ```

fn main() {
    println!("{:#}", deposed_checkers::schema::history().as_value());
}
