"""What Karmada itself may write for a template, whatever a person made it do. These policies hold everybody.

They are a second line behind those about people: if some path of Karmada or some override is not understood there, the
object that would reach a member is still the one that the binding is about. Karmada repeats a refused write, with
growing pauses, and shows it in the events of the template.
"""

from kairship.instances.admission.policy import UPDATE, Policy, Target, Validation

_GROUP = "work.karmada.io"
_RBAC = "rbac.authorization.k8s.io"
_NAMESPACE = "resourcebinding.karmada.io/namespace"
_NAME = "resourcebinding.karmada.io/name"
_CLUSTER_NAME = "clusterresourcebinding.karmada.io/name"

# Karmada names a binding after its template: lower(name-kind), with dots for colons.
_BINDING_NAME = "(each.metadata.name.replace(':', '.') + '-' + each.kind).lowerAscii()"
_IDENTITY = (
    "{it}.kind == {other}.kind && {it}.metadata.name == {other}.metadata.name"
    " && (has({it}.metadata.namespace) ? {it}.metadata.namespace : '')"
    " == (has({other}.metadata.namespace) ? {other}.metadata.namespace : '')"
)

POLICIES = (
    Policy(
        name="kairship-works",
        targets=(Target(_GROUP, ("works",)),),
        variables={
            "annotations": "has(object.metadata.annotations) ? object.metadata.annotations : {}",
            "manifests": "has(object.spec.workload) && has(object.spec.workload.manifests)"
            " ? object.spec.workload.manifests : []",
        },
        validations=(
            Validation(
                f"!('{_NAMESPACE}' in variables.annotations) || variables.manifests.all(each,"
                f" has(each.metadata.namespace) && each.metadata.namespace == variables.annotations['{_NAMESPACE}']"
                f" && {_BINDING_NAME} == variables.annotations['{_NAME}'])",
                "a Work for a ResourceBinding holds the object of this binding, in its namespace, and no other",
            ),
            Validation(
                f"!('{_CLUSTER_NAME}' in variables.annotations) || variables.manifests.all(each,"
                f" !has(each.metadata.namespace) && {_BINDING_NAME} == variables.annotations['{_CLUSTER_NAME}'])",
                "a Work for a ClusterResourceBinding holds the object of this binding and no other",
            ),
        ),
    ),
    Policy(
        name="kairship-works-identity",
        targets=(Target(_GROUP, ("works",), (UPDATE,)),),
        conditions={"applied-before": "has(oldObject.spec.workload) && has(oldObject.spec.workload.manifests)"},
        validations=(
            Validation(
                "!has(object.spec.workload) || !has(object.spec.workload.manifests)"
                " || object.spec.workload.manifests.all(it,"
                f" oldObject.spec.workload.manifests.exists(other, {_IDENTITY.format(it='it', other='other')}))",
                "a Work keeps its object: another object needs a Work of its own",
            ),
        ),
    ),
    Policy(
        name="kairship-bindings",
        targets=(Target(_GROUP, ("resourcebindings", "clusterresourcebindings")),),
        validations=(
            Validation(
                f"!(object.spec.resource.apiVersion.startsWith('{_RBAC}/')"
                " && object.spec.resource.name.startsWith('kairship-'))",
                "roles of the plane are not propagated: the plane itself brings them into members",
            ),
            Validation(
                "!has(object.spec.requiredBy) || object.spec.requiredBy.all(each,"
                " has(each.namespace) && has(object.metadata.namespace)"
                " && each.namespace == object.metadata.namespace)",
                "an object is propagated as a dependency only of objects in its own namespace",
            ),
        ),
    ),
)
