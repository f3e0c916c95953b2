-- What each kind of process may do. `callslip_worker` drives runs. `callslip_client` submits them, tells them things and
-- reads them: a web server with it can't write a log. Grant them to the users of your processes.
DO $$
DECLARE
    one regprocedure;
    role name;
BEGIN
    FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = 'callslip'::regnamespace AND prokind = 'f' LOOP
        -- They reach pgmq, which those who call them need not.
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', one);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
    END LOOP;
    FOREACH role IN ARRAY ARRAY['callslip_worker', 'callslip_client'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = role);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION
            -- Another database of the same server was made ready at the same moment.
            WHEN duplicate_object OR unique_violation THEN NULL;
            -- `migrate` names the role. Until somebody makes it, the owner of the schema does its work.
            WHEN insufficient_privilege THEN NULL;
        END;
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'callslip_worker') THEN
        GRANT USAGE ON SCHEMA callslip TO callslip_worker;
        GRANT SELECT ON ALL TABLES IN SCHEMA callslip TO callslip_worker;
        GRANT INSERT, UPDATE, DELETE ON callslip.run, callslip.event, callslip.ticket, callslip.blob,
            callslip.run_content, callslip.inbox, callslip.watch, callslip.worker TO callslip_worker;
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA callslip TO callslip_worker;
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA callslip TO callslip_worker;
        -- For `status`.
        GRANT USAGE ON SCHEMA pgmq TO callslip_worker;
        GRANT SELECT ON ALL TABLES IN SCHEMA pgmq TO callslip_worker;
        ALTER DEFAULT PRIVILEGES IN SCHEMA pgmq GRANT SELECT ON TABLES TO callslip_worker;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'callslip_client') THEN
        GRANT USAGE ON SCHEMA callslip TO callslip_client;
        GRANT SELECT ON ALL TABLES IN SCHEMA callslip TO callslip_client;
        GRANT INSERT, UPDATE, DELETE ON callslip.watch TO callslip_client;
        GRANT EXECUTE ON FUNCTION callslip.run_with, callslip.tell, callslip.is_cancelled, callslip.due_near, callslip.due,
            callslip.submit(text, text, text, text, text, text, text, integer, double precision, bigint),
            callslip.submit(text, text, text, text, text, text, text, text, integer, double precision, bigint)
            TO callslip_client;
        GRANT USAGE ON SCHEMA pgmq TO callslip_client;
        GRANT SELECT ON ALL TABLES IN SCHEMA pgmq TO callslip_client;
        ALTER DEFAULT PRIVILEGES IN SCHEMA pgmq GRANT SELECT ON TABLES TO callslip_client;
    END IF;
END $$;
