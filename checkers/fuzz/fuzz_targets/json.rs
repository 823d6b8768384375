#![no_main]

use deposed_checkers::import::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| deposed_checkers_fuzz::read(Format::Json, bytes));
