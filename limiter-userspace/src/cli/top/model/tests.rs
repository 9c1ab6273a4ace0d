use limiter_protocol::{bans::BanStatus, testing::explanation};

use super::{
    super::testing::{limit, model, offender, snapshot},
    *,
};

fn apply(model: &mut Model, actions: &[Action]) {
    for action in actions {
        assert!(model.apply(*action).is_continue(), "{action:?}");
    }
}

fn ids(model: &Model) -> Vec<&str> {
    let rows = model.rows().into_iter();
    rows.map(|row| row.offender.id.as_str()).collect()
}

/// Offenders 192.0.2.0, .1, … with the given numbers of drops.
fn drops(second: u64, drops: &[u64]) -> Snapshot {
    let offenders = drops.iter().enumerate();
    let offenders = offenders.map(|(n, drops)| offender("L", &format!("192.0.2.{n}"), *drops));
    let offenders: Vec<_> = offenders.collect();
    snapshot(second, [0, drops.iter().sum()], offenders)
}

#[test]
fn the_fastest_come_first_and_the_selected_row_stays_selected() {
    let mut model = model(&[]);
    assert!(model.is_waiting());
    model.take(drops(0, &[30, 20, 10]));
    assert!(!model.is_waiting());
    assert_eq!(ids(&model), ["192.0.2.0", "192.0.2.1", "192.0.2.2"]);
    assert_eq!(model.selected(), 0);

    apply(&mut model, &[Action::Move(1)]);
    model.take(drops(1, &[30, 25, 20]));
    assert_eq!(ids(&model), ["192.0.2.2", "192.0.2.1", "192.0.2.0"]);
    assert_eq!(model.selected(), 1);
    model.take(drops(2, &[30, 30, 20]));
    assert_eq!(ids(&model), ["192.0.2.1", "192.0.2.0", "192.0.2.2"]);
    assert_eq!(model.selected(), 0);
    assert_eq!(model.history.newest(9), [5, 15]);

    // The selection stops at the last and the first row.
    apply(&mut model, &[Action::Move(10)]);
    assert_eq!(model.selected(), 2);
    apply(&mut model, &[Action::Move(-10)]);
    assert_eq!(model.selected(), 0);
    apply(&mut model, &[Action::Last]);
    assert_eq!(model.selected(), 2);
    // The selected row is forgotten.
    model.take(drops(3, &[30, 30]));
    assert_eq!(model.selected(), 1);
    model.take(drops(4, &[]));
    assert_eq!(model.selected(), 0);
    apply(&mut model, &[Action::Move(1), Action::Explain]);
    assert_eq!(model.front(), FrontElement::Nothing);
}

#[test]
fn sorting_and_filtering() {
    let mut model = model(&["--sort", "drops"]);
    model.take(drops(0, &[30, 20, 40]));
    assert_eq!(ids(&model), ["192.0.2.2", "192.0.2.0", "192.0.2.1"]);
    apply(&mut model, &[Action::Reverse]);
    assert_eq!(ids(&model), ["192.0.2.1", "192.0.2.0", "192.0.2.2"]);
    let typed = |text: &str| text.chars().map(Action::Type).collect::<Vec<_>>();
    apply(&mut model, &[Action::EditFilter]);
    assert_eq!(model.front(), FrontElement::Filter);
    apply(&mut model, &typed("2.1x"));
    assert!(ids(&model).is_empty());
    apply(&mut model, &[Action::Erase, Action::Accept]);
    assert_eq!(model.front(), FrontElement::Nothing);
    assert_eq!(ids(&model), ["192.0.2.1"]);
    apply(&mut model, &[Action::Back]);
    assert_eq!(ids(&model).len(), 3);
}

#[test]
fn paused_only_what_is_missing_is_taken() {
    let mut model = model(&[]);
    model.take(drops(0, &[30]));
    apply(&mut model, &[Action::Pause]);
    model.take(drops(1, &[30, 50]));
    assert_eq!(ids(&model).len(), 1);

    apply(&mut model, &[Action::Group]);
    assert!(model.is_waiting());
    // The response to the query before.
    model.take(drops(2, &[30, 50]));
    assert!(model.is_waiting());
    assert_eq!(model.query().by, Grouping::Range);
    let mut ranges = snapshot(3, [0, 0], [offender("L", "192.0.2.0/24", 80)]);
    ranges.by = Grouping::Range;
    model.take(ranges);
    assert!(!model.is_waiting());
    assert_eq!(ids(&model), ["192.0.2.0/24"]);

    // A range is explained by its addresses.
    apply(&mut model, &[Action::Explain]);
    assert_eq!(model.filter.to_string(), "192.0.2.0/24");
    model.take(drops(4, &[30, 50]));
    assert_eq!(ids(&model), ["192.0.2.1", "192.0.2.0"]);
}

#[test]
fn an_address_is_explained() {
    let mut model = model(&[]);
    model.take(drops(0, &[30, 20]));
    apply(&mut model, &[Action::Last, Action::Explain]);
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    assert_eq!(model.query().explain, Some(address));
    assert!(model.is_waiting());
    let response = |second, address: &str| Snapshot {
        explanation: Some(Box::new(explanation(address))),
        ..drops(second, &[30, 20])
    };
    // The response for another address, from the query before.
    model.take(response(1, "192.0.2.0"));
    assert!(model.is_waiting());
    model.take(response(2, "192.0.2.1"));
    assert!(!model.is_waiting());
    apply(&mut model, &[Action::Back]);
    assert_eq!(model.query().explain, None);
    assert_eq!(model.front(), FrontElement::Nothing);
}

#[test]
fn quitting_is_the_end() {
    assert!(model(&[]).apply(Action::Quit).is_break());
}

fn ban_of(prefix: &str) -> BanStatus {
    BanStatus {
        prefix: prefix.parse().unwrap(),
        origin: "fail2ban".parse().unwrap(),
        limit: None,
        reason: "ssh".to_owned(),
        since: jiff::Timestamp::UNIX_EPOCH,
        until: None,
        ends_in_ns: None,
        times: 1,
        hits: 1_234,
        hit_bytes: 74_040,
        excluded_by: None,
    }
}

#[test]
fn nothing_is_banned_without_confirmation() {
    let mut model = model(&[]);
    // There is no row to ban.
    apply(&mut model, &[Action::Ban, Action::Accept]);
    assert!(model.wanted().is_none());
    model.take(drops(0, &[30, 20]));
    apply(&mut model, &[Action::Ban]);
    assert_eq!(model.front(), FrontElement::Confirmation);
    assert!(model.wanted().is_none());
    // Other rows come first meanwhile, which does not matter.
    model.take(drops(1, &[30, 50]));
    // An invalid duration cannot be confirmed.
    apply(&mut model, &[Action::Type('x'), Action::Accept]);
    assert!(model.wanted().is_none());
    apply(&mut model, &[Action::Erase, Action::Accept]);
    let Some(ConfirmedChange::Ban(prefix, _)) = model.wanted() else {
        panic!("{model:?}")
    };
    assert_eq!(prefix.to_string(), "192.0.2.0/32");
    // The change is being made.
    apply(&mut model, &[Action::Back]);
    assert!(model.wanted().is_some());
    model.show_outcome(Ok("banned".to_owned()));
    assert!(model.wanted().is_none());
    apply(&mut model, &[Action::Back]);
    assert_eq!(model.front(), FrontElement::Nothing);

    apply(&mut model, &[Action::Ban, Action::Back]);
    assert_eq!(model.front(), FrontElement::Nothing);
    assert!(model.wanted().is_none());
}

#[test]
fn bans_are_known_before_they_are_lifted() {
    let mut model = model(&[]);
    model.take(drops(0, &[30]));
    apply(&mut model, &[Action::Pause, Action::Unban, Action::Accept]);
    assert!(model.wanted().is_none() && model.is_waiting());
    let of: IpNet = "192.0.2.0/32".parse().unwrap();
    assert_eq!(model.query().bans_of, Some(of));
    model.take(Snapshot {
        bans: Some((of, vec![ban_of("192.0.2.0/32")])),
        ..drops(1, &[30])
    });
    assert!(!model.is_waiting());
    apply(&mut model, &[Action::Accept]);
    assert!(matches!(model.wanted(), Some(ConfirmedChange::Unban(prefix)) if prefix == of));
}

#[test]
fn what_stands_for_no_address_is_not_banned() {
    let mut model = model(&[]);
    model.take(snapshot(0, [0, 0], [offender("L", "subscriber 7", 3)]));
    apply(&mut model, &[Action::Ban]);
    assert!(matches!(
        &model.page,
        Page::Outcome(Err(why)) if why == "subscriber 7 stands for no address"
    ));
    apply(
        &mut model,
        &[Action::Back, Action::NextSubject, Action::Unban],
    );
    assert!(matches!(&model.page, Page::Outcome(Err(_))));
    assert_eq!(model.query().bans_of, None);
}

#[test]
fn a_limit_opens_its_offenders() {
    let mut model = model(&[]);
    let mut at = drops(0, &[30]);
    at.list.offenders.push(offender("Web", "192.0.2.9", 5));
    at.status.limits = ["L", "Web"]
        .map(|name| (name.to_owned(), limit(1, 2)))
        .into();
    model.take(at);
    apply(&mut model, &[Action::Show(Subject::Limits)]);
    assert_eq!(model.limits().len(), 2);
    assert!(model.limits_on_connections().is_empty());
    apply(&mut model, &[Action::Move(5)]);
    assert_eq!(model.selected(), 1);
    apply(&mut model, &[Action::Explain]);
    assert_eq!(ids(&model), ["192.0.2.9"]);
    apply(
        &mut model,
        &[Action::Show(Subject::Standing), Action::Explain],
    );
    assert_eq!(model.subject, Subject::Standing);
}
