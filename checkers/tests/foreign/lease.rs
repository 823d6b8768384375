//! Foreign histories as leases: what the lease checks make of them.

use deposed_checkers::history::{Body, Event, Op};
use deposed_checkers::import::{Entries, Format, lease};
use deposed_checkers::judge::judge;
use deposed_checkers::verdict::{Check, Verdict, Verdicts};

fn events(format: Format, text: &str) -> Vec<Event> {
    let entries = Entries::new(format, text.as_bytes(), "f");
    let events: Result<_, _> = lease::Events::new(entries, "f").collect();
    events.unwrap_or_else(|error| panic!("{error}"))
}

fn verdicts(format: Format, text: &str) -> Verdicts {
    judge(&lease::header(), &events(format, text))
}

fn violated(verdicts: &Verdicts) -> Vec<Check> {
    verdicts.violated().map(|(check, _)| check).collect()
}

/// A correct term and its successor's, in each notation of tokens.
const CORRECT: &str = "
{:process 0 :type :invoke :f :acquire}
{:process 0 :type :ok :f :acquire :value {:client \"n1\" :fence 3}}
{:process 0 :type :invoke :f :fence :value 3}
{:process 0 :type :ok :f :fence :value 3}
{:process 0 :type :invoke :f :write :value [x 1] :token 3}
{:process 1 :type :invoke :f :acquire :value nil}
{:process 0 :type :ok :f :write :value [x 1]}
{:process 0 :type :invoke :f :release :token 3}
{:process 0 :type :ok :f :release}
{:process 1 :type :ok :f :acquire :value 5}
{:process :nemesis :type :info :f :kill :value {\"n1\" :killed}}
{:process 1 :type :invoke :f :fence :token 5}
{:process 1 :type :ok :f :fence}
{:process 1 :type :invoke :f :read :value [x nil] :token 5}
{:process 1 :type :ok :f :read :value [x 1]}
{:process 1 :type :invoke :f :renew :value 5}
{:process 1 :type :info :f :renew :error :timeout}
{:process 2 :type :invoke :f :delete :key x :token 3}
{:process 2 :type :fail :f :delete :error {:kind :stale-token :presented 3 :seen 5}}
";

#[test]
fn a_correct_history_is_valid_and_what_it_lacks_is_named() {
    let history = CORRECT.replace(":process 2", ":process 0");
    let verdicts = verdicts(Format::Edn, &history);
    for (check, verdict) in &verdicts.0 {
        match (check, verdict) {
            (Check::BeliefSafety, Verdict::NotClaimed(why)) => {
                assert!(why.contains("lead"), "{why}")
            }
            (Check::LockDelay, Verdict::NotClaimed(why)) => {
                assert!(why.contains("lock_delay"), "{why}")
            }
            (Check::Failover | Check::LeaseLinearizable, Verdict::NotClaimed(why)) => {
                assert!(
                    why.contains("calm mark") || why.contains("lease timing"),
                    "{why}"
                );
            }
            (check, verdict) => assert_eq!(verdict, &Verdict::Valid, "{check}"),
        }
    }
    assert!(matches!(
        verdicts.of(Check::StorageSafety),
        Some(Verdict::Valid)
    ));
}

#[test]
fn without_tokens_the_checks_of_tokens_claim_nothing() {
    let history = "process,type,f,key,value\na,invoke,acquire,,\na,ok,acquire,,\n\
                   a,invoke,write,x,1\na,ok,write,x,1\nb,invoke,read,x,\nb,ok,read,x,1\n";
    let verdicts = verdicts(Format::Csv, history);
    for check in [
        Check::TokenMonotonicity,
        Check::StorageSafety,
        Check::ElectionBarrier,
    ] {
        match verdicts.of(check) {
            Some(Verdict::NotClaimed(why)) => assert!(why.contains("token"), "{check}: {why}"),
            other => panic!("{check}: {other:?}"),
        }
    }
    assert_eq!(
        verdicts.of(Check::RegisterLinearizable),
        Some(&Verdict::Valid)
    );
    assert_eq!(verdicts.of(Check::ZombieWrite), Some(&Verdict::Valid));
}

#[test]
fn the_lease_checks_convict_foreign_histories() {
    let terms = "process,type,f,token,key,value\na,invoke,acquire,,,\na,ok,acquire,1,,\n\
                 b,invoke,acquire,,,\nb,ok,acquire,2,,\n";
    let case = |rows: &str| violated(&verdicts(Format::Csv, &format!("{terms}{rows}")));
    assert_eq!(case(""), []);
    let late = "b,invoke,fence,2,,\nb,ok,fence,2,,\na,invoke,write,1,x,9\na,ok,write,1,x,9\n";
    let found = case(late);
    assert!(found.contains(&Check::StorageSafety), "{found:?}");
    assert!(found.contains(&Check::ZombieWrite), "{found:?}");
    assert_eq!(
        case("c,invoke,acquire,,,\nc,ok,acquire,2,,\n"),
        [Check::TokenMonotonicity]
    );
    let unread = "b,invoke,fence,2,,\nb,ok,fence,2,,\nb,invoke,read,2,x,\nb,ok,read,2,x,8\n";
    assert_eq!(case(unread), [Check::RegisterLinearizable]);
    let unfenced = "b,invoke,write,2,x,8\nb,ok,write,2,x,8\n";
    assert_eq!(case(unfenced), []);
    let fenced_late = format!("{unfenced}b,invoke,fence,2,,\nb,ok,fence,2,,\n");
    assert_eq!(case(&fenced_late), [Check::ElectionBarrier]);
    let two = "a,info,lead,1,,\nb,info,lead,2,,\n";
    assert_eq!(case(two), [Check::BeliefSafety]);
}

#[test]
fn who_holds_the_lease_and_asks_again_gets_its_token_again() {
    let again = "process,type,f,token\na,invoke,acquire,\na,ok,acquire,1\n\
                 a,invoke,acquire,\na,ok,acquire,1\n";
    assert_eq!(violated(&verdicts(Format::Csv, again)), []);
    let released = "process,type,f,token\na,invoke,acquire,\na,ok,acquire,1\na,invoke,release,1\n\
                    a,ok,release,1\na,invoke,acquire,\na,ok,acquire,1\n";
    assert_eq!(
        violated(&verdicts(Format::Csv, released)),
        [Check::TokenMonotonicity]
    );
}

#[test]
fn times_that_go_back_are_refused_and_missing_ones_follow_the_last() {
    let rows = "process,type,f,time\na,info,x,7\na,info,x,7\na,info,x,\na,info,x,20\n";
    let times: Vec<_> = events(Format::Csv, rows)
        .iter()
        .map(|event| event.time)
        .collect();
    assert_eq!(times, [7, 7, 8, 20]);
    let back = "process,type,f,time\na,info,x,7\na,info,x,5\n";
    let entries = Entries::new(Format::Csv, back.as_bytes(), "f");
    let error = lease::Events::new(entries, "f").find_map(Result::err);
    assert_eq!(
        error.expect("an error").to_string(),
        "f:3:1: field 'time': 5 after 7: a lease's lines are in the order of their times; sort \
         them, or leave the times out"
    );
}

#[test]
fn leases_are_named_by_key_or_in_the_value() {
    let history = "{:process 0 :type :invoke :f :acquire :key \"l1\"}
                   {:process 1 :type :invoke :f :write :value {:lease :l2 :key :k :value 7 :token 3}}";
    let read = events(Format::Edn, history);
    let ops: Vec<&Op> = read
        .iter()
        .map(|event| match &event.body {
            Body::Invoke(op) => op,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ops[0].lease(), "l1");
    let Op::Write(write) = ops[1] else {
        panic!("a write")
    };
    assert_eq!(
        (&*write.lease, &*write.key, write.token),
        ("l2", "k", Some(3))
    );
    assert_eq!(write.value, 7);
}

#[test]
fn what_is_no_lease_is_refused_with_its_place() {
    for (history, said) in [
        (
            "{:process 0 :type :invoke :f :cas :value [0 1]}",
            "f:1:1: field 'f': 'cas' is no operation of a lease, which are acquire, renew, release, \
             fence, write, read, delete; name the model that it is of",
        ),
        (
            "{:process 0 :type :invoke :f :fence}",
            "f:1:1: field 'token': missing; a fence tells storage a token",
        ),
        (
            "{:process 0 :type :invoke :f :fence :value -1}",
            "f:1:1: field 'token': -1 is no fencing token: they are whole numbers from 0 to 18446744073709551615",
        ),
        (
            "{:process 0 :type :info :f :lead :value {:until :never}}",
            "f:1:1: field 'until': :never is no time: they are whole nanoseconds",
        ),
    ] {
        let entries = Entries::new(Format::Edn, history.as_bytes(), "f");
        let error = lease::Events::new(entries, "f")
            .find_map(Result::err)
            .unwrap();
        assert_eq!(error.to_string(), said);
    }
}
