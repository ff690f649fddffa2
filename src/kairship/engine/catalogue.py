"""The engine's components as data: the name of each binary, the package of its source, and the group that needs it.

Versions are not here: the go.mod of each module pins them (`pins.py`). The order is the build order. kube-apiserver
comes first because it compiles most of the packages that the others share; the others are then little more than linked.
"""

from enum import StrEnum

import msgspec


class Group(StrEnum):
    """What a component is needed for."""

    PLANE = "plane"
    """Everything that `kairship up` runs."""
    TEST = "test"
    """Binaries that only the tests use, such as the Karmada that an upgrade starts from."""
    GEN = "gen"
    """Code generators."""
    MANIFESTS = "manifests"
    """No binaries, only manifests. It is for users who supply their own binaries."""


class Stamp(msgspec.Struct, frozen=True):
    """A version that the linker writes into a Go variable.

    `value` is a format with `{version}`, `{major}` and `{minor}` of the component, or of the Go module `of` if it is
    set.
    """

    variable: str
    value: str = "{version}"
    of: str | None = None


class Component(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    package: str
    group: Group = Group.PLANE
    stamps: tuple[Stamp, ...] = ()
    version_arguments: tuple[str, ...] = ("--version",)
    """The arguments with which the binary prints its version."""


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of YAML in a Go module that the plane needs at run time. It is copied to `share/<name>`."""

    name: str
    source: str
    path: str


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One folder of `engine/`: a go.mod whose tool directives are exactly these components."""

    name: str
    components: tuple[Component, ...]
    trees: tuple[Tree, ...] = ()
    tags: tuple[str, ...] = ()
    sources_bytes: int = 0
    """The measured size of the sources in Go's module cache."""
    compiled_bytes: int = 0
    """The size of the compiled packages in Go's build cache, measured in build order."""


# As upstream's own build does (hack/lib/version.sh). A module proxy does not report the commit, whose default value is
# a template.
_KUBERNETES_STAMPS = tuple(
    Stamp(f"{package}.{variable}", value)
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    for variable, value in (
        ("gitVersion", "{version}"),
        ("gitMajor", "{major}"),
        ("gitMinor", "{minor}"),
        ("gitCommit", "unknown"),
        ("gitTreeState", "clean"),
    )
)

# Upstream stamps only Karmada's own version (hack/util.sh). component-base is part of every server of Karmada too, but
# keeps its default: with a stamp the servers would claim to be a Kubernetes of Karmada's version.
_KARMADA_STAMPS = (
    Stamp("github.com/karmada-io/karmada/pkg/version.gitVersion"),
    Stamp("github.com/karmada-io/karmada/pkg/version.gitTreeState", "clean"),
)

# As helm's Makefile does: without these `helm template` takes the cluster for Kubernetes 1.20.
_HELM_STAMPS = (
    Stamp("helm.sh/helm/v3/internal/version.version"),
    *(
        stamp
        for package in ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
        for stamp in (
            Stamp(f"{package}.k8sVersionMajor", "1"),
            Stamp(f"{package}.k8sVersionMinor", "{minor}", of="k8s.io/client-go"),
        )
    ),
)

# Kubernetes 1.35 keeps the ProtoMessage methods of its types behind this tag for one more release; other modules use
# them.
_PROTOMESSAGE = "kubernetes_protomessage_one_more_release"

# The servers of a Karmada control plane besides kube-apiserver and kube-controller-manager: our name → Karmada's
# command.
KARMADA_SERVERS = {
    "karmada-controller-manager": "controller-manager",
    "karmada-scheduler": "scheduler",
    "karmada-webhook": "webhook",
    "karmada-aggregated-apiserver": "aggregated-apiserver",
    "karmada-search": "karmada-search",
    "karmada-metrics-adapter": "metrics-adapter",
    "karmada-descheduler": "descheduler",
    "karmada-scheduler-estimator": "scheduler-estimator",
}


def _kubernetes(name: str, *, version_arguments: tuple[str, ...] = ("--version",)) -> Component:
    package = f"k8s.io/kubernetes/cmd/{name}"
    return Component(name=name, package=package, stamps=_KUBERNETES_STAMPS, version_arguments=version_arguments)


def _karmada(name: str, command: str, group: Group) -> Component:
    package = f"github.com/karmada-io/karmada/cmd/{command}"
    return Component(name=name, package=package, group=group, stamps=_KARMADA_STAMPS, version_arguments=("version",))


_KARMADA_TREES = (
    Tree(name="karmada-crds", source="github.com/karmada-io/karmada", path="charts/karmada/_crds"),
    Tree(name="karmada-manifests", source="github.com/karmada-io/karmada", path="artifacts/deploy"),
)

MODULES: tuple[Module, ...] = (
    Module(
        name="karmada",
        tags=(_PROTOMESSAGE,),
        sources_bytes=900_000_000,
        compiled_bytes=3_600_000_000,
        components=(
            _kubernetes("kube-apiserver"),
            _kubernetes("kube-controller-manager"),
            _kubernetes("kube-scheduler"),
            _kubernetes("kubectl", version_arguments=("version", "--client")),
            *(_karmada(name, command, Group.PLANE) for name, command in KARMADA_SERVERS.items()),
            _karmada("karmadactl", "karmadactl", Group.TEST),
        ),
        trees=_KARMADA_TREES,
    ),
    Module(
        name="etcd",
        sources_bytes=300_000_000,
        compiled_bytes=200_000_000,
        components=(
            Component(name="etcd", package="go.etcd.io/etcd/server/v3"),
            Component(name="etcdctl", package="go.etcd.io/etcd/etcdctl/v3", version_arguments=("version",)),
            Component(name="etcdutl", package="go.etcd.io/etcd/etcdutl/v3", version_arguments=("version",)),
        ),
    ),
    Module(
        name="kwok",
        sources_bytes=400_000_000,
        compiled_bytes=700_000_000,
        components=(
            Component(
                name="kwok",
                package="sigs.k8s.io/kwok/cmd/kwok",
                stamps=(Stamp("sigs.k8s.io/kwok/pkg/consts.Version"),),
            ),
        ),
        trees=(Tree(name="kwok-stages", source="sigs.k8s.io/kwok", path="kustomize/stage"),),
    ),
    Module(
        name="karmada-previous",
        tags=(_PROTOMESSAGE,),
        sources_bytes=200_000_000,
        compiled_bytes=200_000_000,
        components=tuple(_karmada(name, command, Group.TEST) for name, command in KARMADA_SERVERS.items()),
        trees=_KARMADA_TREES,
    ),
    Module(
        name="helm",
        sources_bytes=500_000_000,
        compiled_bytes=800_000_000,
        components=(
            Component(
                name="helm",
                package="helm.sh/helm/v3/cmd/helm",
                group=Group.TEST,
                stamps=_HELM_STAMPS,
                version_arguments=("version", "--short"),
            ),
        ),
    ),
    Module(
        name="grpcurl",
        sources_bytes=200_000_000,
        compiled_bytes=300_000_000,
        components=(
            Component(
                name="grpcurl",
                package="github.com/fullstorydev/grpcurl/cmd/grpcurl",
                group=Group.TEST,
                stamps=(Stamp("main.version"),),
            ),
        ),
    ),
    Module(
        name="openapi",
        sources_bytes=100_000_000,
        compiled_bytes=100_000_000,
        components=(
            Component(
                name="protoc-gen-openapiv2",
                package="github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-openapiv2",
                group=Group.GEN,
                # Without a commit it would report the version of the main module, which is ours.
                stamps=(Stamp("main.version"), Stamp("main.commit", "none")),
            ),
        ),
    ),
)
