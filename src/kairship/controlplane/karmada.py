"""The processes of one Karmada instance, on top of a Kubernetes control plane of kind `INSTANCE`.

`processes` is a pure function of the plane and its `KarmadaSettings`: the same settings give the same specifications,
and the supervisor restarts only processes whose specification differs. So enabling failover restarts only the
controller-manager. `ensure_certificates` writes the files that the processes read.
"""

from pathlib import Path

import msgspec

from kairship.controlplane import kubernetes
from kairship.controlplane.control_plane import ControlPlane
from kairship.controlplane.kubernetes import KUBERNETES_PORTS, MASTERS, ensure_user
from kairship.controlplane.pki import write_private
from kairship.engine import Engine
from kairship.process.loopback import LOOPBACK
from kairship.supervisor import HttpProbe, ProcessSpec

NAMESPACE = "karmada-system"
AGGREGATED_APISERVER = "karmada-aggregated-apiserver"
SEARCH = "karmada-search"
METRICS_ADAPTER = "karmada-metrics-adapter"
WEBHOOK = "karmada-webhook"
CONTROLLER_MANAGER = "karmada-controller-manager"
SCHEDULER = "karmada-scheduler"
DESCHEDULER = "karmada-descheduler"
ESTIMATOR = "karmada-scheduler-estimator"

# The API server connects to the aggregated API servers by these service names.
SERVICE_HOSTS = tuple(f"{name}.{NAMESPACE}.svc" for name in (AGGREGATED_APISERVER, SEARCH, METRICS_ADAPTER, WEBHOOK))
# The port on which Karmada's schedulers expect the estimator of every member.
ESTIMATOR_SERVICE_PORT = 10352

# The components that exist once. Each member has an estimator of its own besides.
COMPONENTS = (AGGREGATED_APISERVER, SEARCH, METRICS_ADAPTER, WEBHOOK, CONTROLLER_MANAGER, SCHEDULER, DESCHEDULER)
PORTS = (*KUBERNETES_PORTS, *COMPONENTS)


class Failover(msgspec.Struct, frozen=True, kw_only=True):
    """When a member counts as lost, and how its workloads move. All values are seconds."""

    cluster_monitor_period: int = 5
    cluster_monitor_grace_period: int = 40
    cluster_startup_grace_period: int = 60
    cluster_success_threshold: int = 30
    cluster_failure_threshold: int = 30
    graceful_eviction_timeout: int = 600


class Descheduling(msgspec.Struct, frozen=True, kw_only=True):
    """How often unschedulable replicas are moved to other members. All values are seconds."""

    interval: int = 120
    unschedulable_threshold: int = 300


class KarmadaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an instance that can change after its creation.

    `estimators` maps a member to the kubeconfig that its estimator uses. Estimators run while descheduling is enabled.
    """

    version: str
    failover: Failover | None = None
    descheduling: Descheduling | None = None
    metrics_adapter: bool = False
    search: bool = False
    estimators: dict[str, bytes] = {}

    @property
    def running_estimators(self) -> dict[str, bytes]:
        return self.estimators if self.descheduling is not None else {}

    def __repr__(self) -> str:  # kubeconfigs are secrets
        return f"KarmadaSettings(version={self.version!r}, estimators={sorted(self.estimators)!r})"


def estimator_of(cluster: str) -> str:
    """The estimator of a member. Karmada finds it by a Service of the same name."""
    return f"{ESTIMATOR}-{cluster}"


def port_names(settings: KarmadaSettings) -> tuple[str, ...]:
    """The names of all ports that the instance needs, in a stable order. Each estimator has two ports."""
    estimators = [
        name
        for cluster in sorted(settings.running_estimators)
        for name in (estimator_of(cluster), f"{estimator_of(cluster)}-health")
    ]
    return (*PORTS, *estimators)


def ensure_certificates(plane: ControlPlane, settings: KarmadaSettings) -> None:
    """Write or renew all files that the processes of this instance read. Idempotent."""
    kubernetes.ensure_certificates(plane, service_hosts=SERVICE_HOSTS)
    # Each component has its own user, so that the audit log distinguishes them. Like upstream, all are administrators.
    for component in COMPONENTS:
        ensure_user(plane, component, common_name=f"system:{component}", organizations=(MASTERS,))
    plane.pki.ensure_authority("estimator-ca", common_name=f"{plane.group}-{plane.uid[:8]}-estimator-ca")
    plane.pki.ensure_server(
        "estimator", authority="estimator-ca", common_name="estimator", hosts=(LOOPBACK, "localhost")
    )
    plane.pki.ensure_client("estimator-client", authority="estimator-ca", common_name=SCHEDULER)
    for cluster, kubeconfig in settings.running_estimators.items():
        write_private(plane.kubeconfig(estimator_of(cluster)), kubeconfig)
    # The webhook reads two files of these names from a directory.
    serving = plane.pki.pair("serving")
    write_private(plane.config("webhook") / "tls.crt", serving.cert.read_bytes())
    write_private(plane.config("webhook") / "tls.key", serving.key.read_bytes())


def retired_files(plane: ControlPlane, settings: KarmadaSettings) -> list[Path]:
    """Kubeconfigs of members that no estimator reads any longer."""
    wanted = {plane.kubeconfig(estimator_of(cluster)) for cluster in settings.running_estimators}
    return [path for path in plane.kubeconfig("").parent.glob(f"{ESTIMATOR}-*.yaml") if path not in wanted]


def processes(plane: ControlPlane, engine: Engine, settings: KarmadaSettings) -> list[ProcessSpec]:
    return [*control_plane(plane, engine, settings), *controllers(plane, engine, settings)]


def control_plane(plane: ControlPlane, engine: Engine, settings: KarmadaSettings) -> list[ProcessSpec]:
    """The processes that must run before Karmada's own objects can be created."""
    return [
        kubernetes.etcd(plane, engine),
        kubernetes.kube_apiserver(plane, engine),
        kubernetes.kube_controller_manager(plane, engine),
        _aggregated(plane, engine, settings, AGGREGATED_APISERVER, store=True),
        _webhook(plane, engine, settings),
    ]


def controllers(plane: ControlPlane, engine: Engine, settings: KarmadaSettings) -> list[ProcessSpec]:
    """The processes that act on Karmada's objects. They exit if these do not exist yet."""
    specs = [_controller_manager(plane, engine, settings), _scheduler(plane, engine, settings)]
    if settings.search:
        specs.append(_aggregated(plane, engine, settings, SEARCH, store=True))
    if settings.metrics_adapter:
        specs.append(_aggregated(plane, engine, settings, METRICS_ADAPTER, store=False))
    if settings.descheduling is not None:
        specs.append(_descheduler(plane, engine, settings, settings.descheduling))
    specs += [_estimator(plane, engine, settings, cluster) for cluster in sorted(settings.running_estimators)]
    return specs


def _binary(engine: Engine, settings: KarmadaSettings, component: str) -> str:
    return str(engine.binary(component, version=settings.version))


def _aggregated(
    plane: ControlPlane, engine: Engine, settings: KarmadaSettings, component: str, *, store: bool
) -> ProcessSpec:
    serving, etcd_client = plane.pki.pair("serving"), plane.pki.pair("etcd-client")
    kubeconfig, port = plane.kubeconfig(component), plane.ports[component]
    argv = [
        _binary(engine, settings, component),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.cert}",
        f"--tls-private-key-file={serving.key}",
    ]
    files = [str(serving.cert), str(serving.key), str(kubeconfig)]
    if store:
        argv += [
            f"--etcd-servers=https://{LOOPBACK}:{plane.ports['etcd']}",
            f"--etcd-cafile={plane.pki.pair('etcd-ca').cert}",
            f"--etcd-certfile={etcd_client.cert}",
            f"--etcd-keyfile={etcd_client.key}",
        ]
        files += [str(etcd_client.cert), str(etcd_client.key)]
    else:
        argv.append("--metrics-bind-address=0")
    return ProcessSpec(
        name=plane.process(component),
        cwd=str(plane.directory),
        argv=tuple(argv),
        after=(plane.process("kube-apiserver"),),
        probe=HttpProbe(url=f"https://{LOOPBACK}:{port}/readyz", ca_file=str(plane.pki.pair("ca").cert)),
        files=tuple(files),
        ports=(port,),
    )


def _webhook(plane: ControlPlane, engine: Engine, settings: KarmadaSettings) -> ProcessSpec:
    directory, kubeconfig = plane.config("webhook"), plane.kubeconfig(WEBHOOK)
    port = plane.ports[WEBHOOK]
    return ProcessSpec(
        name=plane.process(WEBHOOK),
        cwd=str(plane.directory),
        argv=(
            _binary(engine, settings, WEBHOOK),
            f"--kubeconfig={kubeconfig}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--cert-dir={directory}",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--allow-no-execute-taint-policy=true",
        ),
        after=(plane.process("kube-apiserver"),),
        probe=HttpProbe(url=f"https://{LOOPBACK}:{port}/readyz/", ca_file=str(plane.pki.pair("ca").cert)),
        files=(str(directory / "tls.crt"), str(directory / "tls.key"), str(kubeconfig)),
        ports=(port,),
    )


def _controller_manager(plane: ControlPlane, engine: Engine, settings: KarmadaSettings) -> ProcessSpec:
    # The maximum delay of retries: work on a member that was unreachable is retried this soon after the member is back.
    # The default is 17 minutes.
    arguments = ["--cluster-status-update-frequency=10s", "--rate-limiter-max-delay=10s"]
    if settings.failover is not None:
        failover = settings.failover
        arguments += [
            "--feature-gates=Failover=true",
            "--enable-no-execute-taint-eviction=true",
            f"--cluster-monitor-period={failover.cluster_monitor_period}s",
            f"--cluster-monitor-grace-period={failover.cluster_monitor_grace_period}s",
            f"--cluster-startup-grace-period={failover.cluster_startup_grace_period}s",
            f"--cluster-success-threshold={failover.cluster_success_threshold}s",
            f"--cluster-failure-threshold={failover.cluster_failure_threshold}s",
            f"--graceful-eviction-timeout={failover.graceful_eviction_timeout}s",
        ]
    return _controller(plane, engine, settings, CONTROLLER_MANAGER, arguments)


def _scheduler(plane: ControlPlane, engine: Engine, settings: KarmadaSettings) -> ProcessSpec:
    if settings.descheduling is None:
        return _controller(plane, engine, settings, SCHEDULER, [])
    arguments = ["--enable-scheduler-estimator=true", *_estimator_client(plane)]
    return _controller(plane, engine, settings, SCHEDULER, arguments, files=_estimator_client_files(plane))


def _descheduler(
    plane: ControlPlane, engine: Engine, settings: KarmadaSettings, descheduling: Descheduling
) -> ProcessSpec:
    arguments = [
        *_estimator_client(plane),
        f"--descheduling-interval={descheduling.interval}s",
        f"--unschedulable-threshold={descheduling.unschedulable_threshold}s",
    ]
    return _controller(plane, engine, settings, DESCHEDULER, arguments, files=_estimator_client_files(plane))


def _controller(
    plane: ControlPlane,
    engine: Engine,
    settings: KarmadaSettings,
    component: str,
    arguments: list[str],
    *,
    files: tuple[str, ...] = (),
) -> ProcessSpec:
    port = plane.ports[component]
    return ProcessSpec(
        name=plane.process(component),
        cwd=str(plane.directory),
        argv=(
            _binary(engine, settings, component),
            f"--kubeconfig={plane.kubeconfig(component)}",
            "--leader-elect=false",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={LOOPBACK}:{port}",
            *arguments,
        ),
        after=(plane.process(AGGREGATED_APISERVER), plane.process(WEBHOOK)),
        probe=HttpProbe(url=f"http://{LOOPBACK}:{port}/healthz"),
        files=(str(plane.kubeconfig(component)), *files),
        ports=(port,),
    )


def _estimator(plane: ControlPlane, engine: Engine, settings: KarmadaSettings, cluster: str) -> ProcessSpec:
    serving, kubeconfig = plane.pki.pair("estimator"), plane.kubeconfig(estimator_of(cluster))
    port, health = plane.ports[estimator_of(cluster)], plane.ports[f"{estimator_of(cluster)}-health"]
    return ProcessSpec(
        name=plane.process(estimator_of(cluster)),
        cwd=str(plane.directory),
        argv=(
            _binary(engine, settings, ESTIMATOR),
            f"--kubeconfig={kubeconfig}",
            f"--cluster-name={cluster}",
            f"--server-port={port}",
            f"--grpc-auth-cert-file={serving.cert}",
            f"--grpc-auth-key-file={serving.key}",
            f"--grpc-client-ca-file={plane.pki.pair('estimator-ca').cert}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={LOOPBACK}:{health}",
        ),
        probe=HttpProbe(url=f"http://{LOOPBACK}:{health}/healthz"),
        files=(str(serving.cert), str(serving.key), str(kubeconfig)),
        ports=(port, health),
    )


def _estimator_client(plane: ControlPlane) -> list[str]:
    authority, cert, key = _estimator_client_files(plane)
    return [
        f"--scheduler-estimator-ca-file={authority}",
        f"--scheduler-estimator-cert-file={cert}",
        f"--scheduler-estimator-key-file={key}",
    ]


def _estimator_client_files(plane: ControlPlane) -> tuple[str, str, str]:
    client = plane.pki.pair("estimator-client")
    return str(plane.pki.pair("estimator-ca").cert), str(client.cert), str(client.key)
