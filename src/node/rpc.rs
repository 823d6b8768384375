//! Remote calls in the shortest way, for a system of your own that has no protocol
//! to bring along: one call a connection, an operation out, yes or no back.
//!
//! A system with a protocol of its own needs none of this: it speaks through
//! [`Node::net`] and records through [`Node::invoke`], as [`call`] does.

use std::{cell::RefCell, rc::Rc};

use deposed_checkers::history::{Answer, Failure, Name, Nanos, Op};
use serde_json::{Value, json};

use super::Node;

/// Sends an operation to `peer`, waits for the answer for at most `patience` (by the
/// node's clock) and records what came of it; whether it was done.
///
/// On the wire it is a frame of the operation's kind with its fields in `op`, so that
/// message rules for `acquire` or `write` strike it like one of our own.
pub async fn call(node: &Node, peer: &Name, op: Op, patience: Nanos) -> bool {
    let frame = json!({"kind": op.f().name(), "op": op});
    let call = node.invoke(op).await;
    let until = node.now().saturating_add(patience);
    let connected = node.timeout(patience, node.net().connect(peer)).await;
    let Some(Ok(mut connection)) = connected else {
        // It surely did not leave.
        call.fail(Failure::new("connection-refused"));
        return false;
    };
    let asking = async {
        connection.send(&frame).await.ok()?;
        connection.receive::<Value>().await.ok()?
    };
    let left = until.saturating_sub(node.now());
    let reply = node.timeout(left, asking).await.flatten();
    let done = reply.and_then(|reply| reply["done"].as_bool());
    match done {
        Some(true) => call.ok(Answer::None),
        Some(false) => call.fail(Failure::new("refused")),
        // It may have been done: dropped, the call is indefinite.
        None => drop(call),
    }
    done == Some(true)
}

/// Answers calls for as long as the node can be reached: `done` is told the frame's
/// kind and the operation's fields, one call at a time.
pub async fn serve(node: Node, done: impl FnMut(&str, &Value) -> bool + 'static) {
    let done = Rc::new(RefCell::new(done));
    let Ok(mut listener) = node.net().listen().await else {
        return;
    };
    while let Ok(mut connection) = listener.accept().await {
        let done = done.clone();
        node.spawn(async move {
            while let Ok(Some(frame)) = connection.receive::<Value>().await {
                let kind = frame["kind"].as_str().unwrap_or_default();
                let done = done.borrow_mut()(kind, &frame["op"]);
                let reply = json!({"kind": format!("{kind}-reply"), "done": done});
                if connection.send(&reply).await.is_err() {
                    return;
                }
            }
        });
    }
}
