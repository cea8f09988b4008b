// Command policies keeps a node to NetworkPolicies, by kube-router's own controller of them:
// chains of iptables and sets of addresses.
//
// Not its job: what else kube-router does, which kube-proxy and a bridge do here.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how the API server is reached")
	config := options.NewKubeRouterConfig()
	config.EnableIPv4 = true
	flag.StringVar(&config.HostnameOverride, "node", "", "name of the node")
	flag.StringVar(&config.ClusterIPCIDRs[0], "services", config.ClusterIPCIDRs[0], "addresses of services")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *kubeconfig, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string, config *options.KubeRouterConfig) error {
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	tables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	seen := informers.NewSharedInformerFactory(api, 0)
	pods, policies, namespaces := seen.Core().V1().Pods().Informer(), seen.Networking().V1().NetworkPolicies().Informer(), seen.Core().V1().Namespaces().Informer()
	seen.Start(ctx.Done())
	seen.WaitForCacheSync(ctx.Done())
	controller, err := netpol.NewNetworkPolicyController(api, config, pods, policies, namespaces, new(sync.Mutex), tables, sets)
	if err != nil {
		return err
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, policies: controller.NetworkPolicyEventHandler, namespaces: controller.NamespaceEventHandler} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	beats := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() {
		for range beats { // nobody asks
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(beats, ctx.Done(), &running)
	running.Wait()
	return nil
}
