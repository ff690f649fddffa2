"""The processes of a Kubernetes control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok.

The functions turn a `ControlPlane` into process specifications; `ensure_certificates` writes the files that the
processes read. Everything listens on loopback. One replica of each process runs under the supervisor, so leader
election is off: it would only add seconds to every start, and two writes per second and component on an idle laptop.
"""

from kairship.controlplane.control_plane import ControlPlane, PlaneKind
from kairship.controlplane.pki import KeyPair, write_private
from kairship.engine import Engine
from kairship.process.loopback import LOOPBACK
from kairship.supervisor import HttpProbe, ProcessSpec

MASTERS = "system:masters"
SERVICE_RANGE = "10.96.0.0/16"
FIRST_SERVICE_ADDRESS = "10.96.0.1"
ETCD_QUOTA_BYTES = 4 * 1024**3

ETCD_PORTS = ("etcd", "etcd-peer", "etcd-metrics")
KUBERNETES_PORTS = (*ETCD_PORTS, "kube-apiserver", "kube-controller-manager")
MEMBER_PORTS = (*KUBERNETES_PORTS, "kube-scheduler", "kwok")

# No pods run in an instance. Of the stock controllers only those for namespaces, owners and credentials are enabled:
# the others would create pods for workload templates that are meant for the members.
INSTANCE_CONTROLLERS = (
    "namespace",
    "garbagecollector",
    "serviceaccount-token",
    "ttl-after-finished",
    "bootstrapsigner",
    "tokencleaner",
    "csrcleaner",
    "csrsigning",
    "clusterrole-aggregation",
)
# The global cluster contains custom resources and service accounts. No pods run in it.
GLOBAL_CONTROLLERS = (
    "namespace",
    "garbagecollector",
    "serviceaccount",
    "serviceaccount-token",
    "clusterrole-aggregation",
)

# Only the health endpoints are open without credentials: the supervisor's probes use them.
_AUTHENTICATION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
"""


def ensure_certificates(plane: ControlPlane, *, service_hosts: tuple[str, ...] = ()) -> None:
    """Write or renew all files that the processes of this module read. Idempotent."""
    pki = plane.pki
    for authority in ("ca", "front-proxy-ca", "etcd-ca"):
        pki.ensure_authority(authority, common_name=f"{plane.group}-{plane.uid[:8]}-{authority}")
    hosts = (
        LOOPBACK,
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        FIRST_SERVICE_ADDRESS,
        *service_hosts,
    )
    pki.ensure_server("serving", authority="ca", common_name="kube-apiserver", hosts=hosts)
    pki.ensure_server("etcd", authority="etcd-ca", common_name="etcd", hosts=(LOOPBACK, "localhost"))
    pki.ensure_client("etcd-client", authority="etcd-ca", common_name="kube-apiserver")
    pki.ensure_client("front-proxy-client", authority="front-proxy-ca", common_name="front-proxy-client")
    pki.ensure_signing_key("service-account")
    write_private(plane.config("authentication.yaml"), _AUTHENTICATION.encode())

    ensure_user(plane, "admin", common_name="system:admin", organizations=(MASTERS,))
    ensure_user(plane, "kube-controller-manager", common_name="system:kube-controller-manager")
    if plane.kind is PlaneKind.MEMBER:
        ensure_user(plane, "kube-scheduler", common_name="system:kube-scheduler")
        ensure_user(plane, "kwok", common_name="kwok", organizations=(MASTERS,))
        pki.ensure_client("kubelet-client", authority="ca", common_name="kubelet-client", organizations=(MASTERS,))


def ensure_user(plane: ControlPlane, user: str, *, common_name: str, organizations: tuple[str, ...] = ()) -> None:
    """Write a client certificate, and a kubeconfig that contains it."""
    plane.pki.ensure_client(user, authority="ca", common_name=common_name, organizations=organizations)
    write_private(plane.kubeconfig(user), plane.connection(user).to_kubeconfig(name=plane.group, user=user))


def etcd(plane: ControlPlane, engine: Engine) -> ProcessSpec:
    serving = plane.pki.pair("etcd")
    authority = plane.pki.pair("etcd-ca").cert
    client = f"https://{LOOPBACK}:{plane.ports['etcd']}"
    peer = f"https://{LOOPBACK}:{plane.ports['etcd-peer']}"
    metrics = f"http://{LOOPBACK}:{plane.ports['etcd-metrics']}"
    return ProcessSpec(
        name=plane.process("etcd"),
        cwd=str(plane.directory),
        argv=(
            str(engine.binary("etcd")),
            f"--name={plane.group}",
            f"--data-dir={plane.etcd_data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={plane.group}={peer}",
            f"--listen-metrics-urls={metrics}",
            "--client-cert-auth",
            f"--trusted-ca-file={authority}",
            f"--cert-file={serving.cert}",
            f"--key-file={serving.key}",
            "--peer-client-cert-auth",
            f"--peer-trusted-ca-file={authority}",
            f"--peer-cert-file={serving.cert}",
            f"--peer-key-file={serving.key}",
            "--auto-compaction-mode=periodic",
            "--auto-compaction-retention=10m",
            f"--quota-backend-bytes={ETCD_QUOTA_BYTES}",
            "--logger=zap",
            "--log-level=warn",
        ),
        probe=HttpProbe(url=f"{metrics}/readyz"),
        files=(*_paths(serving), str(authority)),
        ports=tuple(plane.ports[name] for name in ETCD_PORTS),
    )


def kube_apiserver(plane: ControlPlane, engine: Engine) -> ProcessSpec:
    pki = plane.pki
    serving, etcd_client = pki.pair("serving"), pki.pair("etcd-client")
    front_proxy, signing = pki.pair("front-proxy-client"), pki.signing_pair("service-account")
    argv = [
        str(engine.binary("kube-apiserver")),
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",
        f"--secure-port={plane.ports['kube-apiserver']}",
        f"--etcd-servers=https://{LOOPBACK}:{plane.ports['etcd']}",
        f"--etcd-cafile={pki.pair('etcd-ca').cert}",
        f"--etcd-certfile={etcd_client.cert}",
        f"--etcd-keyfile={etcd_client.key}",
        "--authorization-mode=Node,RBAC",
        "--enable-bootstrap-token-auth=true",
        f"--authentication-config={plane.config('authentication.yaml')}",
        f"--client-ca-file={pki.pair('ca').cert}",
        f"--tls-cert-file={serving.cert}",
        f"--tls-private-key-file={serving.key}",
        "--tls-min-version=VersionTLS12",
        f"--proxy-client-cert-file={front_proxy.cert}",
        f"--proxy-client-key-file={front_proxy.key}",
        f"--requestheader-client-ca-file={pki.pair('front-proxy-ca').cert}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={signing.cert}",
        f"--service-account-signing-key-file={signing.key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--profiling=false",
        # Aggregator routing is off: with it the ExternalName services of Karmada's aggregated API servers would not
        # resolve.
    ]
    pairs = (serving, etcd_client, front_proxy, signing)
    files = [str(plane.config("authentication.yaml")), *(path for pair in pairs for path in _paths(pair))]
    if plane.kind is PlaneKind.INSTANCE:
        # Workload templates are only stored here: they may name service accounts and volumes that exist in members.
        argv.append("--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount")
    if plane.kind is PlaneKind.MEMBER:
        kubelet = pki.pair("kubelet-client")
        argv += [
            f"--kubelet-client-certificate={kubelet.cert}",
            f"--kubelet-client-key={kubelet.key}",
            "--kubelet-preferred-address-types=InternalIP",
        ]
        files += _paths(kubelet)
    return ProcessSpec(
        name=plane.process("kube-apiserver"),
        cwd=str(plane.directory),
        argv=tuple(argv),
        after=(plane.process("etcd"),),
        probe=HttpProbe(url=f"{plane.server}/readyz", ca_file=str(pki.pair("ca").cert)),
        files=tuple(files),
        ports=(plane.ports["kube-apiserver"],),
    )


def kube_controller_manager(plane: ControlPlane, engine: Engine) -> ProcessSpec:
    pki = plane.pki
    authority = pki.pair("ca")
    argv = [
        *_secured(plane, engine, "kube-controller-manager"),
        f"--root-ca-file={authority.cert}",
        f"--service-account-private-key-file={pki.pair('service-account').key}",
        "--use-service-account-credentials=true",
        f"--cluster-signing-cert-file={authority.cert}",
        f"--cluster-signing-key-file={authority.key}",
    ]
    controllers = {PlaneKind.INSTANCE: INSTANCE_CONTROLLERS, PlaneKind.GLOBAL: GLOBAL_CONTROLLERS}.get(plane.kind)
    if controllers is not None:
        argv.append(f"--controllers={','.join(controllers)}")
    return _component(plane, "kube-controller-manager", argv)


def kube_scheduler(plane: ControlPlane, engine: Engine) -> ProcessSpec:
    return _component(plane, "kube-scheduler", _secured(plane, engine, "kube-scheduler"))


# kwok has no flag for profiling. All other options have the values that kwok gives them if there is no such document;
# if there is one, kwok does not complete it.
_KWOK_OPTIONS = """\
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  enableProfilingHandler: false
  enableDebuggingHandlers: true
  cidr: 10.0.0.0/24
  podPlayStageParallelism: 4
  nodePlayStageParallelism: 4
  nodeLeaseParallelism: 4
  podsOnNodeSyncParallelism: 1
  enablePodsOnNodeSyncListPager: true
"""


def kwok(plane: ControlPlane, engine: Engine) -> ProcessSpec:
    """kwok simulates the kubelet of every node, with the stages that are part of its release."""
    port = plane.ports["kwok"]
    return ProcessSpec(
        name=plane.process("kwok"),
        cwd=str(plane.directory),
        argv=(
            str(engine.binary("kwok")),
            f"--config={plane.config('kwok-stages.yaml')}",
            f"--kubeconfig={plane.kubeconfig('kwok')}",
            "--manage-all-nodes=true",
            f"--node-ip={LOOPBACK}",
            f"--node-port={port}",
            f"--server-address={LOOPBACK}:{port}",
            "--node-lease-duration-seconds=40",
        ),
        after=(plane.process("kube-apiserver"),),
        probe=HttpProbe(url=f"http://{LOOPBACK}:{port}/healthz"),
        files=(str(plane.kubeconfig("kwok")), str(plane.config("kwok-stages.yaml"))),
        ports=(port,),
    )


def write_kwok_stages(plane: ControlPlane, engine: Engine) -> None:
    """Write the stages that make nodes ready, pods run and jobs end into the one file that kwok reads.

    Profiling is off: kwok would serve it to everybody on the machine.
    """
    stages = engine.kwok_stages()
    chosen = ("node/fast", "node/heartbeat-with-lease", "pod/fast", "volume/fast")
    files = [path for folder in chosen for path in sorted((stages / folder).glob("*.yaml"))]
    # The folders also contain a kustomization and a storage class, which kwok does not read.
    documents = [text for text in (path.read_text() for path in files) if "kind: Stage\n" in text]
    write_private(plane.config("kwok-stages.yaml"), "\n---\n".join([_KWOK_OPTIONS, *documents]).encode())


def _secured(plane: ControlPlane, engine: Engine, component: str) -> list[str]:
    serving = plane.pki.pair("serving")
    kubeconfig = plane.kubeconfig(component)
    return [
        str(engine.binary(component)),
        f"--bind-address={LOOPBACK}",
        f"--secure-port={plane.ports[component]}",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--tls-cert-file={serving.cert}",
        f"--tls-private-key-file={serving.key}",
        "--leader-elect=false",
        "--profiling=false",
    ]


def _component(plane: ControlPlane, component: str, argv: list[str]) -> ProcessSpec:
    port = plane.ports[component]
    return ProcessSpec(
        name=plane.process(component),
        cwd=str(plane.directory),
        argv=tuple(argv),
        after=(plane.process("kube-apiserver"),),
        probe=HttpProbe(url=f"https://{LOOPBACK}:{port}/healthz", ca_file=str(plane.pki.pair("ca").cert)),
        files=(*_paths(plane.pki.pair("serving")), str(plane.kubeconfig(component))),
        ports=(port,),
    )


def _paths(pair: KeyPair) -> tuple[str, ...]:
    return str(pair.cert), str(pair.key)
