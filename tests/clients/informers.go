package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Two caches of the same objects, which must be the same in the end. A line on standard input asks for both.
func follow(kubeconfig, namespace string, protobuf bool) {
	stop := make(chan struct{})
	typed := informers.NewSharedInformerFactoryWithOptions(
		kubernetes.NewForConfigOrDie(reached(kubeconfig, protobuf)), 0, informers.WithNamespace(namespace))
	untyped := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		dynamic.NewForConfigOrDie(reached(kubeconfig, false)), 0, namespace, nil)
	kind := corev1.SchemeGroupVersion.WithResource("configmaps")
	one, other := typed.Core().V1().ConfigMaps().Informer(), untyped.ForResource(kind).Informer()
	typed.Start(stop)
	untyped.Start(stop)
	if !cache.WaitForCacheSync(stop, one.HasSynced, other.HasSynced) {
		fail(fmt.Errorf("the informers did not sync"))
	}
	tell(line{Event: "synced"})
	asked := bufio.NewScanner(os.Stdin)
	for asked.Scan() {
		tell(line{Event: "state", Typed: versions(one), Dynamic: versions(other)})
	}
	close(stop)
}

func versions(informer cache.SharedIndexInformer) map[string]string {
	found := map[string]string{}
	for _, object := range informer.GetStore().List() {
		about := object.(v1.Object)
		found[about.GetNamespace()+"/"+about.GetName()] = about.GetResourceVersion()
	}
	return found
}

func informing(arguments []string) {
	flags := flag.NewFlagSet("informers", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the server")
	namespace := flags.String("namespace", "", "all of them when empty")
	protobuf := flags.Bool("protobuf", false, "the typed one speaks protobuf")
	_ = flags.Parse(arguments)
	follow(*kubeconfig, *namespace, *protobuf)
}

// Deployments, because there are many of them where it is measured.
func syncing(arguments []string) {
	flags := flag.NewFlagSet("sync", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the server")
	protobuf := flags.Bool("protobuf", false, "speak protobuf")
	_ = flags.Parse(arguments)
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(reached(*kubeconfig, *protobuf)), 0)
	informer := factory.Apps().V1().Deployments().Informer()
	stop := make(chan struct{})
	began := time.Now()
	factory.Start(stop)
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	tell(line{Event: "synced", Seconds: time.Since(began).Seconds(), Count: len(informer.GetStore().ListKeys())})
	close(stop)
}
