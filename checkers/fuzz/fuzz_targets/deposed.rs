#![no_main]

use deposed_checkers::{judge::Judge, reader::Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, events)) = Reader::new(bytes, "fuzz") else {
        return;
    };
    let mut judge = Judge::new(&header);
    for event in events.map_while(Result::ok) {
        judge.see(&event);
    }
    judge.finish();
});
