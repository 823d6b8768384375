//! Files: which format they are in, plain or gzipped.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use deposed_checkers::import::{self, Format, History, OpenError};
use flate2::{Compression, write::GzEncoder};

/// A file of this test process's own.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("opening");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The format that is told of a text, plain and gzipped: none where it is this crate's own.
fn guessed(name: &str, text: &str) -> Option<Format> {
    let told = |path: PathBuf| match import::open(path, None) {
        Ok(History::Foreign(entries)) => Some(entries.format()),
        Ok(History::Deposed(..)) | Err(OpenError::Deposed(_)) => None,
        Err(error) => panic!("{error}"),
    };
    let plain = told(file(name, text.as_bytes()));
    assert_eq!(
        told(file(&format!("{name}.gz"), &gzipped(text.as_bytes()))),
        plain
    );
    plain
}

#[test]
fn the_first_bytes_tell_the_format() {
    let long = format!(
        "{}[{{:process 0}}]",
        "; a comment, and a long one\n".repeat(2_000)
    );
    for (text, format) in [
        ("[{:process 0 :type :invoke}]", Some(Format::Edn)),
        (
            "\u{feff}; why\n({:type :invoke, :f :write})",
            Some(Format::Edn),
        ),
        ("{:process 0}", Some(Format::Edn)),
        ("#jepsen.history.Op{:process 0}", Some(Format::Edn)),
        ("[ ]", Some(Format::Edn)),
        ("[#_{} {}]", Some(Format::Edn)),
        (&long, Some(Format::Edn)),
        ("[\n {\"process\": 0}]", Some(Format::Json)),
        ("{\"process\":0,\"type\":\"invoke\"}", Some(Format::Json)),
        (
            "{\n  \"type\": \"invoke\",\n  \"process\": 0\n}",
            Some(Format::Json),
        ),
        ("{\"ClientId\":1,\"Input\":{}}", Some(Format::Etcd)),
        (
            "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n",
            Some(Format::JepsenLog),
        ),
        ("value,type,\"f\",process\n", Some(Format::Csv)),
        ("{\"deposed\":1}\n", None),
        ("{\"workload\":\"w\",\"deposed\":1}\n", None),
        ("{\"deposed\"", None),
        // An event of ours without its header.
        ("{\"index\":0,\"process\":\"a\",\"call\":1}\n", None),
        ("", None),
        ("hello\n", None),
        ("a,b,c\n", None),
    ] {
        assert_eq!(guessed("guess", text), format, "{text}");
    }
}

#[test]
fn a_named_format_is_taken_at_its_word() {
    let path = file("named", b"{:process 0 :type :info :f :x}");
    let Ok(History::Foreign(mut entries)) = import::open(&path, Some(Format::Json)) else {
        panic!("opened");
    };
    let said = entries.next().unwrap().unwrap_err().to_string();
    assert!(
        said.ends_with("1:2: not JSON: key must be a string: write keys in quotes, as \"process\""),
        "{said}"
    );
}

#[test]
fn a_gzipped_file_that_was_cut_off_says_so() {
    let text = "{:process 0 :type :info :f :x}\n".repeat(10_000);
    let whole = gzipped(text.as_bytes());
    let path = file("torn.edn.gz", &whole[..whole.len() / 2]);
    let History::Foreign(mut entries) = import::open(&path, None).unwrap() else {
        panic!("foreign");
    };
    let said = entries.find_map(Result::err).unwrap().to_string();
    let ending = ": the compressed file ends early: it was cut off; copy it again, whole";
    assert!(said.ends_with(ending), "{said}");
    assert!(entries.next().is_none(), "after an error it ends");
}

#[test]
fn what_follows_a_gzipped_file_is_told_as_that() {
    let row = gzipped(&b"{:process 0 :type :info :f :x}\n".repeat(1_000));
    let said = |name, bytes: &[u8]| {
        let path = file(name, bytes);
        let History::Foreign(entries) = import::open(&path, None).unwrap() else {
            panic!("foreign");
        };
        let (read, wrong): (Vec<_>, Vec<_>) = entries.partition(Result::is_ok);
        let wrong = wrong.into_iter().filter_map(Result::err);
        (
            read.len(),
            wrong.map(|error| error.to_string()).collect::<String>(),
        )
    };
    assert_eq!(
        said("two.edn.gz", &[&row[..], &row].concat()),
        (2_000, String::new())
    );
    let (_, wrong) = said("junk.edn.gz", &[&row[..], b"junk"].concat());
    let ending = "other bytes follow the end of the compressed data: cut them off; is it a \
                  history file, and whole?";
    assert!(wrong.ends_with(ending), "{wrong}");
}

#[test]
fn a_file_that_is_not_there_says_so() {
    let said = match import::open("/no/such/file.edn", None) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened"),
    };
    assert!(
        said.starts_with("/no/such/file.edn: cannot be opened: "),
        "{said}"
    );
}
