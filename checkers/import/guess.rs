//! Tells a format by a history's first bytes.

use std::io::{self, BufRead, Chain, Cursor, Read};

use super::Format;

/// How far it is looked: comments may stand before the first operation.
const LOOK: usize = 1 << 16;
/// How much is looked at, where there is as much.
const ENOUGH: usize = 4 << 10;

/// A text whose beginning was looked at, whole again.
pub(super) type Looked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The format, or none where it is this crate's own or unknown; and the whole input again.
/// No more is asked for than tells it: whoever writes line by line need not be waited for.
pub(super) fn guess<R: BufRead>(mut input: R) -> io::Result<(Option<Format>, Looked<R>)> {
    let mut seen = Vec::new();
    let format = loop {
        let filled = input.fill_buf();
        let more = match filled {
            Ok(more) => more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let length = more.len();
        seen.extend_from_slice(more);
        input.consume(length);
        let at_end = length == 0 || seen.len() >= LOOK;
        if let Some(format) = told(&seen, at_end) {
            break format;
        }
    };
    Ok((format, Cursor::new(seen).chain(input)))
}

/// What the bytes tell; none when more of them are needed.
fn told(bytes: &[u8], at_end: bool) -> Option<Option<Format>> {
    let enough = at_end || bytes.len() >= ENOUGH;
    let unmarked = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut commented = false;
    let mut rest = blank(unmarked, &mut commented);
    let is_list = matches!(rest.first(), Some(b'[' | b'('));
    let is_vector = rest.first() == Some(&b'[');
    if is_list {
        rest = blank(&rest[1..], &mut commented);
    }
    let Some(first) = rest.first() else {
        // An empty vector is an empty history, whatever it is of.
        return at_end.then_some((is_list || commented).then_some(Format::Edn));
    };
    match first {
        b'{' if is_list => match blank(&rest[1..], &mut commented).first() {
            None if !at_end => None,
            Some(b'"') if is_vector && !commented => Some(Some(Format::Json)),
            _ => Some(Some(Format::Edn)),
        },
        b'{' => {
            let line = first_line(rest, at_end)?;
            let inside = blank(&rest[1..], &mut commented);
            match inside.first() {
                // An event without its header is no operation of another tool's.
                Some(b'"') if has(line, "deposed") || has(line, "call") => Some(None),
                Some(b'"') if has(line, "ClientId") => Some(Some(Format::Etcd)),
                Some(b'"') if has(text(rest), "process") => Some(Some(Format::Json)),
                Some(b'"') | None => enough.then_some(None),
                _ => Some(Some(Format::Edn)),
            }
        }
        b'#' => {
            let mut lines = text(rest).split_inclusive('\n');
            let header = lines.find(|line| !line.starts_with('#'));
            let whole = header.filter(|line| at_end || line.ends_with('\n'));
            match whole {
                // Its reader says that a table has no comments.
                Some(line) if is_table(line) => Some(Some(Format::Csv)),
                None if !enough && rest.starts_with(b"# ") => None,
                _ => Some(Some(Format::Edn)),
            }
        }
        _ if is_list || commented => Some(Some(Format::Edn)),
        _ => {
            let line = first_line(rest, at_end)?;
            Some(match (is_table(line), line.contains("jepsen.util")) {
                (true, _) => Some(Format::Csv),
                (_, true) => Some(Format::JepsenLog),
                _ => None,
            })
        }
    }
}

/// Whether a line is a table's header, or would be one, with commas.
fn is_table(line: &str) -> bool {
    [',', ';', '\t'].iter().any(|separator| {
        let columns: Vec<&str> = line
            .split(*separator)
            .map(|name| name.trim().trim_matches('"'))
            .collect();
        ["f", "process", "type"].iter().all(|name| {
            columns
                .iter()
                .any(|column| column.eq_ignore_ascii_case(name))
        })
    })
}

/// The first line, once it is whole.
fn first_line(bytes: &[u8], at_end: bool) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    if end.is_none() && !at_end {
        return None;
    }
    Some(text(&bytes[..end.unwrap_or(bytes.len())]))
}

/// As far as it is UTF-8: what is not, is for the readers to complain of.
fn text(bytes: &[u8]) -> &str {
    let chunk = bytes.utf8_chunks().next();
    chunk.map_or("", |chunk| chunk.valid())
}

/// Whether a JSON text has a key of this name anywhere.
fn has(text: &str, name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    let mut behind = text.split(&quoted).skip(1);
    behind.any(|after| after.trim_start().starts_with(':'))
}

/// Without the white space and EDN's comments before the first of something.
fn blank<'a>(mut bytes: &'a [u8], commented: &mut bool) -> &'a [u8] {
    loop {
        let text = bytes.trim_ascii_start();
        match text.strip_prefix(b";") {
            None => return text,
            Some(comment) => {
                *commented = true;
                let end = comment.iter().position(|byte| *byte == b'\n');
                bytes = end.map_or(&[], |end| &comment[end..]);
            }
        }
    }
}
