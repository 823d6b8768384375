//! The small histories in `verdicts/`, each with the verdicts it must get.

use std::path::Path;

use deposed_checkers::judge::Judge;
use deposed_checkers::reader;
use deposed_checkers::verdict::{Check, Verdicts};

fn verdicts(path: &Path) -> Result<Verdicts, reader::ReadError> {
    let (header, events) = reader::open(path)?;
    let mut judge = Judge::new(&header);
    for event in events {
        judge.see(&event?);
    }
    Ok(judge.finish())
}

#[test]
fn every_history_gets_its_verdict() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts");
    let expected = std::fs::read_to_string(folder.join("EXPECTED.tsv")).unwrap();
    let mut judged = 0;
    for row in expected.lines().skip(1) {
        let [file, check, verdict, ..] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row has four columns: {row}")
        };
        let found = verdicts(&folder.join(file));
        if check == "exit" {
            assert!(found.is_err(), "{file} is refused");
        } else {
            let check: Check = check.parse().unwrap();
            let found = found.unwrap();
            assert_eq!(
                found.of(check).unwrap().word(),
                verdict,
                "{file}: {found:?}"
            );
        }
        judged += 1;
    }
    assert_eq!(judged, 24);
}

#[test]
fn checks_go_by_their_names() {
    for check in Check::ALL {
        assert_eq!(check.to_string().parse(), Ok(check));
    }
    let unknown = "storage-safty".parse::<Check>().unwrap_err().to_string();
    assert!(
        unknown.contains("'storage-safty'; the checks are well-formed, token"),
        "{unknown}"
    );
}
