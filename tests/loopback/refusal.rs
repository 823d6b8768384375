//! A server that must not start on what is on its disk tells whoever started it.

use std::{fs, path::Path, rc::Rc, sync::Arc};

use deposed::{
    checkers::history::Name,
    clock::BootClock,
    disk::FileDisk,
    flaw::Planted,
    lease::StoreLimits,
    net::tcp::{AddressBook, TcpNet},
    node::{Node, Panics, Parts, gate::Gate, lease_server, server::ServerError, storage_server},
    recorder::Recorder,
    rng::stream,
};
use futures_util::FutureExt;

fn on_the_disk_in(folder: &Path) -> Node {
    let (name, clock): (Name, _) = ("server".into(), Arc::new(BootClock::starting_now()));
    Node::new(Parts {
        net: Rc::new(TcpNet::new(name.clone(), Rc::new(AddressBook::new()))),
        rng: stream(7, &name, 2),
        name,
        boots: 2,
        clock: clock.clone(),
        disk: Rc::new(FileDisk::open(folder)),
        recorder: Recorder::new(clock),
        gate: Gate::default(),
        panics: Panics::default(),
    })
}

#[test]
fn a_server_that_must_not_start_says_why() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("loopback-refusal");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("records.redb"), "no database").expect("a file");
    let node = || on_the_disk_in(&folder);
    for ended in [
        lease_server::run(node(), StoreLimits::default(), Planted::NONE).now_or_never(),
        storage_server::run(node(), Planted::NONE).now_or_never(),
    ] {
        let Err(why) = ended.expect("it does not wait for a better file");
        assert!(matches!(why, ServerError::Disk(_)), "{why}");
        let said = why.to_string();
        assert!(
            said.starts_with("the server does not start: the durable file '"),
            "{said}"
        );
        assert!(said.contains("records.redb' is corrupted"), "{said}");
    }
}
