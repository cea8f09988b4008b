export namespace operations {
    namespace cancelEmbedderSwitch {
        let method: string;
        let path: string;
        let query: never[];
        let headers: never[];
        let answer: string[];
    }
    namespace captureMemories {
        let method_1: string;
        export { method_1 as method };
        let path_1: string;
        export { path_1 as path };
        let query_1: string[];
        export { query_1 as query };
        let headers_1: string[];
        export { headers_1 as headers };
        let answer_1: string[];
        export { answer_1 as answer };
    }
    namespace changeGraph {
        let method_2: string;
        export { method_2 as method };
        let path_2: string;
        export { path_2 as path };
        let query_2: string[];
        export { query_2 as query };
        let headers_2: string[];
        export { headers_2 as headers };
        let answer_2: string[];
        export { answer_2 as answer };
    }
    namespace changeNamespace {
        let method_3: string;
        export { method_3 as method };
        let path_3: string;
        export { path_3 as path };
        let query_3: never[];
        export { query_3 as query };
        let headers_3: never[];
        export { headers_3 as headers };
        let answer_3: string[];
        export { answer_3 as answer };
    }
    namespace createNamespace {
        let method_4: string;
        export { method_4 as method };
        let path_4: string;
        export { path_4 as path };
        let query_4: never[];
        export { query_4 as query };
        let headers_4: never[];
        export { headers_4 as headers };
        let answer_4: string[];
        export { answer_4 as answer };
    }
    namespace deleteNamespace {
        let method_5: string;
        export { method_5 as method };
        let path_5: string;
        export { path_5 as path };
        let query_5: never[];
        export { query_5 as query };
        let headers_5: never[];
        export { headers_5 as headers };
        let answer_5: string[];
        export { answer_5 as answer };
    }
    namespace exportGraph {
        let method_6: string;
        export { method_6 as method };
        let path_6: string;
        export { path_6 as path };
        let query_6: string[];
        export { query_6 as query };
        let headers_6: string[];
        export { headers_6 as headers };
        let answer_6: never[];
        export { answer_6 as answer };
    }
    namespace exportMemories {
        let method_7: string;
        export { method_7 as method };
        let path_7: string;
        export { path_7 as path };
        let query_7: string[];
        export { query_7 as query };
        let headers_7: string[];
        export { headers_7 as headers };
        let answer_7: never[];
        export { answer_7 as answer };
    }
    namespace followEvents {
        let method_8: string;
        export { method_8 as method };
        let path_8: string;
        export { path_8 as path };
        let query_8: string[];
        export { query_8 as query };
        let headers_8: string[];
        export { headers_8 as headers };
        let answer_8: never[];
        export { answer_8 as answer };
    }
    namespace forgetRecord {
        let method_9: string;
        export { method_9 as method };
        let path_9: string;
        export { path_9 as path };
        let query_9: string[];
        export { query_9 as query };
        let headers_9: string[];
        export { headers_9 as headers };
        let answer_9: string[];
        export { answer_9 as answer };
    }
    namespace getAudit {
        let method_10: string;
        export { method_10 as method };
        let path_10: string;
        export { path_10 as path };
        let query_10: string[];
        export { query_10 as query };
        let headers_10: string[];
        export { headers_10 as headers };
        let answer_10: string[];
        export { answer_10 as answer };
    }
    namespace getCluster {
        let method_11: string;
        export { method_11 as method };
        let path_11: string;
        export { path_11 as path };
        let query_11: never[];
        export { query_11 as query };
        let headers_11: never[];
        export { headers_11 as headers };
        let answer_11: string[];
        export { answer_11 as answer };
    }
    namespace getEmbedder {
        let method_12: string;
        export { method_12 as method };
        let path_12: string;
        export { path_12 as path };
        let query_12: never[];
        export { query_12 as query };
        let headers_12: never[];
        export { headers_12 as headers };
        let answer_12: string[];
        export { answer_12 as answer };
    }
    namespace getNamespace {
        let method_13: string;
        export { method_13 as method };
        let path_13: string;
        export { path_13 as path };
        let query_13: never[];
        export { query_13 as query };
        let headers_13: never[];
        export { headers_13 as headers };
        let answer_13: string[];
        export { answer_13 as answer };
    }
    namespace getRecord {
        let method_14: string;
        export { method_14 as method };
        let path_14: string;
        export { path_14 as path };
        let query_14: string[];
        export { query_14 as query };
        let headers_14: string[];
        export { headers_14 as headers };
        let answer_14: string[];
        export { answer_14 as answer };
    }
    namespace getRecordHistory {
        let method_15: string;
        export { method_15 as method };
        let path_15: string;
        export { path_15 as path };
        let query_15: string[];
        export { query_15 as query };
        let headers_15: string[];
        export { headers_15 as headers };
        let answer_15: string[];
        export { answer_15 as answer };
    }
    namespace getStatus {
        let method_16: string;
        export { method_16 as method };
        let path_16: string;
        export { path_16 as path };
        let query_16: string[];
        export { query_16 as query };
        let headers_16: never[];
        export { headers_16 as headers };
        let answer_16: string[];
        export { answer_16 as answer };
    }
    namespace getTimeline {
        let method_17: string;
        export { method_17 as method };
        let path_17: string;
        export { path_17 as path };
        let query_17: string[];
        export { query_17 as query };
        let headers_17: string[];
        export { headers_17 as headers };
        let answer_17: string[];
        export { answer_17 as answer };
    }
    namespace listAuditedReads {
        let method_18: string;
        export { method_18 as method };
        let path_18: string;
        export { path_18 as path };
        let query_18: string[];
        export { query_18 as query };
        let headers_18: string[];
        export { headers_18 as headers };
        let answer_18: string[];
        export { answer_18 as answer };
    }
    namespace listNamespaces {
        let method_19: string;
        export { method_19 as method };
        let path_19: string;
        export { path_19 as path };
        let query_19: string[];
        export { query_19 as query };
        let headers_19: never[];
        export { headers_19 as headers };
        let answer_19: string[];
        export { answer_19 as answer };
    }
    namespace listRecords {
        let method_20: string;
        export { method_20 as method };
        let path_20: string;
        export { path_20 as path };
        let query_20: string[];
        export { query_20 as query };
        let headers_20: string[];
        export { headers_20 as headers };
        let answer_20: string[];
        export { answer_20 as answer };
    }
    namespace readGraph {
        let method_21: string;
        export { method_21 as method };
        let path_21: string;
        export { path_21 as path };
        let query_21: string[];
        export { query_21 as query };
        let headers_21: string[];
        export { headers_21 as headers };
        let answer_21: string[];
        export { answer_21 as answer };
    }
    namespace reviseRecord {
        let method_22: string;
        export { method_22 as method };
        let path_22: string;
        export { path_22 as path };
        let query_22: string[];
        export { query_22 as query };
        let headers_22: string[];
        export { headers_22 as headers };
        let answer_22: string[];
        export { answer_22 as answer };
    }
    namespace searchMemories {
        let method_23: string;
        export { method_23 as method };
        let path_23: string;
        export { path_23 as path };
        let query_23: string[];
        export { query_23 as query };
        let headers_23: string[];
        export { headers_23 as headers };
        let answer_23: string[];
        export { answer_23 as answer };
    }
    namespace searchNamespaces {
        let method_24: string;
        export { method_24 as method };
        let path_24: string;
        export { path_24 as path };
        let query_24: string[];
        export { query_24 as query };
        let headers_24: string[];
        export { headers_24 as headers };
        let answer_24: string[];
        export { answer_24 as answer };
    }
    namespace switchEmbedder {
        let method_25: string;
        export { method_25 as method };
        let path_25: string;
        export { path_25 as path };
        let query_25: never[];
        export { query_25 as query };
        let headers_25: never[];
        export { headers_25 as headers };
        let answer_25: string[];
        export { answer_25 as answer };
    }
}
