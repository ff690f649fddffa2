"""The process specifications of an instance follow from its settings: the supervisor restarts those that differ."""

import pytest

from kairship.controlplane import ControlPlane, karmada
from kairship.controlplane.karmada import Descheduling, Failover, KarmadaSettings
from kairship.engine import Engine
from kairship.supervisor import ProcessSpec

BASIC = KarmadaSettings(version="v1")


def specs(plane: ControlPlane, engine: Engine, settings: KarmadaSettings) -> dict[str, ProcessSpec]:
    """The specifications by component."""
    found = karmada.processes(plane, engine, settings)
    assert len({spec.name for spec in found}) == len(found)
    return {spec.name.partition("/")[2]: spec for spec in found}


@pytest.mark.parametrize(
    ("settings", "touched"),
    [
        (KarmadaSettings(version="v1"), set()),
        (KarmadaSettings(version="v1", failover=Failover()), {"karmada-controller-manager"}),
        (KarmadaSettings(version="v1", search=True), {"karmada-search"}),
        (KarmadaSettings(version="v1", metrics_adapter=True), {"karmada-metrics-adapter"}),
        (
            KarmadaSettings(version="v1", descheduling=Descheduling()),
            {"karmada-descheduler", "karmada-scheduler"},
        ),
        (
            KarmadaSettings(version="v1", descheduling=Descheduling(), estimators={"m1": b"kubeconfig"}),
            {"karmada-descheduler", "karmada-scheduler", "karmada-scheduler-estimator-m1"},
        ),
        (KarmadaSettings(version="v1", estimators={"m1": b"kubeconfig"}), set()),
        (
            KarmadaSettings(version="v2"),
            {
                "karmada-aggregated-apiserver",
                "karmada-webhook",
                "karmada-controller-manager",
                "karmada-scheduler",
            },
        ),
    ],
    ids=["nothing", "failover", "search", "metrics", "descheduling", "estimator", "estimator unused", "version"],
)
def test_a_setting_touches_its_own_components(
    paper_plane: ControlPlane, paper_engine: Engine, settings: KarmadaSettings, touched: set[str]
) -> None:
    before, after = specs(paper_plane, paper_engine, BASIC), specs(paper_plane, paper_engine, settings)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == touched


def test_every_specification_is_one_that_the_supervisor_takes(paper_plane: ControlPlane, paper_engine: Engine) -> None:
    everything = KarmadaSettings(
        version="v1",
        failover=Failover(),
        descheduling=Descheduling(),
        metrics_adapter=True,
        search=True,
        estimators={"m1": b"kubeconfig"},
    )
    found = specs(paper_plane, paper_engine, everything)
    assert {spec.name: spec.problem() for spec in found.values() if spec.problem()} == {}
    assert {spec.name.partition("/")[0] for spec in found.values()} == {"instance-paper"}
    known = {spec.name for spec in found.values()}
    assert all(set(spec.after) <= known for spec in found.values())
    ports = [port for spec in found.values() for port in spec.ports]
    assert len(set(ports)) == len(ports)
    assert all(spec.probe is not None for spec in found.values())


def test_every_file_that_a_process_is_told_to_read_restarts_it_when_it_changes(
    paper_plane: ControlPlane, paper_engine: Engine
) -> None:
    """Above all this is a renewed certificate. Authorities need not be listed: a new authority renews every leaf."""
    everything = KarmadaSettings(
        version="v1", descheduling=Descheduling(), metrics_adapter=True, search=True, estimators={"m1": b"kubeconfig"}
    )
    directory = str(paper_plane.directory)
    for spec in specs(paper_plane, paper_engine, everything).values():
        values = [word.partition("=")[2] for word in spec.argv]
        read = {value for value in values if value.startswith(directory) and value.endswith((".crt", ".yaml"))}
        authorities = {value for value in read if value.endswith("ca.crt")}
        assert read - authorities <= set(spec.files), spec.name


def test_estimators_run_and_have_ports_only_while_descheduling_is_on() -> None:
    off = KarmadaSettings(version="v1", estimators={"m1": b"", "m2": b""})
    on = KarmadaSettings(version="v1", estimators={"m2": b"", "m1": b""}, descheduling=Descheduling())
    assert karmada.port_names(off) == karmada.PORTS
    assert karmada.port_names(on)[len(karmada.PORTS) :] == (
        "karmada-scheduler-estimator-m1",
        "karmada-scheduler-estimator-m1-health",
        "karmada-scheduler-estimator-m2",
        "karmada-scheduler-estimator-m2-health",
    )


def test_certificates_are_written_once_and_kubeconfigs_of_members_go_when_unused(paper_plane: ControlPlane) -> None:
    def written() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in paper_plane.directory.rglob("*") if path.is_file()}

    on = KarmadaSettings(version="v1", estimators={"m1": b"kubeconfig"}, descheduling=Descheduling())
    karmada.ensure_certificates(paper_plane, on)
    first = written()
    karmada.ensure_certificates(paper_plane, on)
    assert written() == first
    assert karmada.retired_files(paper_plane, on) == []
    estimator = paper_plane.kubeconfig("karmada-scheduler-estimator-m1")
    assert estimator.read_bytes() == b"kubeconfig"
    assert karmada.retired_files(paper_plane, BASIC) == [estimator]


def test_what_is_secret_is_not_shown() -> None:
    assert "hidden" not in repr(KarmadaSettings(version="v1", estimators={"m1": b"hidden"}))
