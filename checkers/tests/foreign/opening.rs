//! Files: which format they are in, plain or gzipped.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufReader, Read, Write};
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
        ("Time,Process,TYPE,\"F\"\n", Some(Format::Csv)),
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

/// A text that comes line by line; whoever asks for more than these waits for ever.
struct Live(VecDeque<&'static str>);

impl Read for Live {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let line = self
            .0
            .pop_front()
            .expect("more is asked for than is needed");
        into[..line.len()].copy_from_slice(line.as_bytes());
        Ok(line.len())
    }
}

#[test]
fn no_more_is_read_than_tells_the_format_and_the_first_entry() {
    for (lines, format) in [
        (&["{:process 0 :type :info :f :x}\n"][..], Some(Format::Edn)),
        (
            &["[\n", "{:process 0 :type :info :f :x}\n"],
            Some(Format::Edn),
        ),
        (
            &["{\"process\":0,\"type\":\"info\",\"f\":\"x\"}\n"],
            Some(Format::Json),
        ),
        (
            &["[{\"process\":0,", "\"type\":\"info\",\"f\":\"x\"}"],
            Some(Format::Json),
        ),
        (
            &["INFO jepsen.util - 0 :info :x nil\n"],
            Some(Format::JepsenLog),
        ),
        (&["process,type,f\n", "0,info,x\n"], Some(Format::Csv)),
        (&["{\"deposed\":1}\n"], None),
    ] {
        let live = BufReader::new(Live(lines.iter().copied().collect()));
        match import::open_text(live, "live").unwrap() {
            History::Foreign(mut entries) => {
                assert_eq!(Some(entries.format()), format, "{lines:?}");
                assert_eq!(entries.next().unwrap().unwrap().f, "x", "{lines:?}");
            }
            History::Deposed(..) => assert_eq!(format, None, "{lines:?}"),
        }
    }
    // What it cannot be is told by its first line, too.
    for line in ["hello\n", "{\"index\":0,\"call\":1}\n"] {
        let live = BufReader::new(Live([line].into()));
        assert!(import::open_text(live, "live").is_err(), "{line}");
    }
}

/// What is given by mistake, or saved by an editor that means well.
#[test]
fn what_is_packed_otherwise_or_utf_16_says_what_to_do() {
    let tar = [&b"h.edn"[..], &[0; 252], b"ustar\0"].concat();
    for (name, bytes, said) in [
        ("h.zip", &b"PK\x03\x04\x14"[..], "packed with zip: "),
        ("h.zst", b"\x28\xB5\x2F\xFD\x04", "packed with zstd: "),
        ("h.xz", b"\xFD7zXZ\0", "packed with xz: "),
        ("h.bz2", b"BZh91AY", "packed with bzip2: "),
        ("h.tar", &tar, ":1: packed with tar: "),
        ("h.tar.gz", &gzipped(&tar), ":1: packed with tar: "),
        ("little.edn", b"\xFF\xFE{\0:\0", "UTF-16: "),
        ("big.edn", b"\xFE\xFF\0{\0:", "UTF-16: "),
    ] {
        match import::open(file(name, bytes), None) {
            Err(error) => assert!(error.to_string().contains(said), "{name}: {error}"),
            Ok(_) => panic!("{name} is read"),
        }
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
