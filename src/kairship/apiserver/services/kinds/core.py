"""The operations of the Core service: events, and pods in member clusters. Its other methods are not served yet."""

from kairship.apiserver.services.kinds.events import list_events, list_instance_event_kinds, list_instance_events
from kairship.apiserver.services.kinds.pods import list_pods_for_member_cluster
from kairship.apiserver.services.resources import OperationTable

CORE: OperationTable = {
    "ListEvents": list_events,
    "ListInstanceEvents": list_instance_events,
    "ListInstanceEventKinds": list_instance_event_kinds,
    "ListPodsForMemberCluster": list_pods_for_member_cluster,
}
